"""Whether devices are given to more than can have them."""

from collections import Counter

from casaba.model.quantity import quantity
from tests.conformance.allocator.building import Json
from tests.conformance.allocator.case import Case

_Id = tuple[str, str, str]


def overbooked(case: Case, given: list[Json]) -> list[str]:
    """What of the devices that are given now is more than there is, beside what is held."""
    held = [r for h in case.holders for r in h["status"]["allocation"]["devices"]["results"]]
    devices = {
        (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"], device["name"]): device
        for slice_ in case.slices
        for device in slice_["spec"].get("devices", [])
    }
    wrong = []
    for identity in {_id(result) for result in given}:
        users = [r for r in (*held, *given) if _id(r) == identity and not r.get("adminAccess")]
        wrong += _overbooked(devices[identity], users)
    return wrong


def _overbooked(device: Json, users: list[Json]) -> list[str]:
    if not device.get("allowMultipleAllocations"):
        return [f"{device['name']} is given twice"] if len(users) > 1 else []
    used: Counter[str] = Counter()
    for user in users:
        for name, amount in user.get("consumedCapacity", {}).items():
            used[name] += quantity(amount).nanos
    return [
        f"{device['name']}: too much {name}"
        for name, capacity in device.get("capacity", {}).items()
        if used[name] > quantity(capacity["value"]).nanos
    ]


def _id(result: Json) -> _Id:
    return result["driver"], result["pool"], result["device"]
