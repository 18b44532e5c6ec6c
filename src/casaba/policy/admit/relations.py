"""Constraints of a claim that no card can ever meet."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from casaba.policy.admit.asked import AskedDevices, Entry
from casaba.policy.admit.verdict import Verdict, shown
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Device

_KINDS = ("matchAttribute", "distinctAttribute")
_PUBLISHED = (
    "architecture",
    "brand",
    "cudaComputeCapability",
    "cudaDriverVersion",
    "driverVersion",
    "minor",
    "pcieBusID",
    "productName",
    "type",
    "uuid",
)
"""What every card of this driver has, see policy.slices."""


def judge_constraints(devices: AskedDevices, cards: Collection[Device]) -> Verdict:
    """Constraints that speak of our requests; `cards` are those that are visible now."""
    ours = [entry for entry in devices.constraints if _is_ours(entry, devices)]
    if not ours:
        return Verdict()
    known = set(_PUBLISHED).union(*(card.attributes for card in cards))
    known = {name if "/" in name else f"{DRIVER_NAME}/{name}" for name in known}
    refusals = [
        *(text for entry in ours for text in _unknown(entry, known)),
        *_contradictions(ours, devices),
    ]
    foreign = [text for entry in ours for text in _foreign(entry, known)]
    return Verdict(refusals=tuple(refusals), warnings=tuple(foreign))


def _is_ours(entry: Entry, devices: AskedDevices) -> bool:
    return any(entry.is_for(asked) for asked in devices.ours())


def _attributes(entry: Entry) -> Iterator[tuple[str, str]]:
    """Kind of the constraint and the attribute's full name."""
    for kind in _KINDS:
        name = entry.form.get(kind)
        if isinstance(name, str):
            yield kind, name


def _unknown(entry: Entry, known: Collection[str]) -> Iterator[str]:
    for kind, name in _attributes(entry):
        domain, _, identifier = name.rpartition("/")
        if domain != DRIVER_NAME or name in known:
            continue
        short = sorted(one.rpartition("/")[2] for one in known if one.startswith(f"{domain}/"))
        nearest = get_close_matches(identifier, short, n=1)
        hint = (
            f"did you mean {domain}/{nearest[0]}?" if nearest else f"there are {', '.join(short)}"
        )
        yield f"{entry.at}.{kind}: no card has the attribute {shown(name)}; {hint}"


def _foreign(entry: Entry, known: Collection[str]) -> Iterator[str]:
    for kind, name in _attributes(entry):
        if name.rpartition("/")[0] != DRIVER_NAME and name not in known:
            yield (
                f"{entry.at}.{kind}: no card that is visible now has the attribute {shown(name)}: "
                "the claim will stay Pending; leave the constraint out or use one of "
                f"{DRIVER_NAME}, such as {DRIVER_NAME}/uuid"
            )


def _contradictions(ours: list[Entry], devices: AskedDevices) -> Iterator[str]:
    """The same attribute can't be equal and different for the same two requests."""
    for entry in ours:
        different = entry.form.get("distinctAttribute")
        for other in ours:
            equal = other.form.get("matchAttribute")
            if isinstance(different, str) and different == equal:
                both = {asked.base for asked in devices.ours() if entry.is_for(asked)} & {
                    asked.base for asked in devices.ours() if other.is_for(asked)
                }
                if len(both) > 1:
                    yield (
                        f"{entry.at}.distinctAttribute: {shown(different)} can't be different for "
                        f"the requests {', '.join(sorted(both))}, which {other.at} wants to have "
                        "the same; leave one of the two out"
                    )
