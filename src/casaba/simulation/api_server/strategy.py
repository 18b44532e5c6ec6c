"""From what a request brings to the object that is stored: what each door lets through.

The rules of each kind's registry strategy in kube-apiserver 1.36. Nothing here changes its
arguments. Pure but for the clock, which is asked if no time is given.
"""

from typing import Any

from casaba.simulation.api_server import schemas
from casaba.simulation.api_server.decoding import decoded, object_of
from casaba.simulation.api_server.defaults import quality_of_service, set_defaults
from casaba.simulation.api_server.field_validation import with_defaults
from casaba.simulation.api_server.requests import Object, copied
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.validation import validated

__all__ = [
    "decoded",
    "object_of",
    "prepared_for_create",
    "prepared_for_update",
    "validated",
]

STATUS_KEEPS_METADATA = frozenset({"ResourceClaim"})
"""Kinds whose status subresource lets nothing but the status through."""

_TYPE_AND_META = frozenset({"apiVersion", "kind", "metadata"})
_STATUS_METADATA = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def prepared_for_create(info: ResourceInfo, object_: Object, *, now: str = "") -> Object:
    """The object as a new one: defaults, first status and generation.

    Where the status is a subresource of its own, the one that came along is dropped; nodes bring
    theirs. `now` is the time for defaults that hold one.
    """
    # The name may have been generated, and other objects get defaults by it.
    prepared: Object = set_defaults(info, copied(object_), now)
    if "status" in info.subresources and info.kind != "Node":
        prepared["status"] = _first_status(info, prepared)
    if info.kind == "Namespace":
        prepared["spec"] = {"finalizers": ["kubernetes"]}
    if info.has_generation:
        prepared["metadata"] = {**prepared["metadata"], "generation": 1}
    return prepared


def _first_status(info: ResourceInfo, object_: Object) -> Object:
    if info.kind == "Namespace":
        return {"phase": "Active"}
    if info.kind == "Pod":
        return {"phase": "Pending", "qosClass": quality_of_service(object_["spec"])}
    status: Object = with_defaults(schemas.of(info), {}).get("status", {})
    return status


def prepared_for_update(info: ResourceInfo, new: Object, old: Object, subresource: str) -> Object:
    """The object as it may follow the old one: each door changes only its own part.

    The main one leaves the status, the status subresource leaves everything else; a changed spec
    raises the generation where the kind counts it.
    """
    prepared = dict(new)
    if subresource == "":
        return _changed_in_main(info, prepared, old)
    if subresource == "status":
        return _changed_in_status(info, prepared, old)
    if subresource == "finalize":
        spec = {**old.get("spec", {}), "finalizers": prepared.get("spec", {}).get("finalizers", [])}
        return {
            **old,
            "metadata": prepared["metadata"],
            "spec": {k: v for k, v in spec.items() if v},
        }
    return prepared


def _changed_in_main(info: ResourceInfo, new: Object, old: Object) -> Object:
    if "status" in info.subresources:
        _take(new, old, "status")
    if info.kind == "Namespace":
        _take(new, old, "spec")
    if not info.has_generation:
        return new
    generation = old["metadata"].get("generation", 1)
    if _desired(new) != _desired(old):
        generation += 1
    new["metadata"] = {**new["metadata"], "generation": generation}
    return new


def _changed_in_status(info: ResourceInfo, new: Object, old: Object) -> Object:
    metadata = dict(new["metadata"])
    kept = _STATUS_METADATA if info.kind in STATUS_KEEPS_METADATA else ("ownerReferences",)
    for field in (*kept, "generation"):
        _take(metadata, old["metadata"], field)
    prepared = {**old, "metadata": metadata}
    _take(prepared, new, "status")
    if info.kind == "ResourceClaim":
        prepared["status"] = _without_deallocated(prepared.get("status", {}), old.get("status", {}))
    return prepared


def _without_deallocated(status: Object, old: Object) -> Object:
    """What drivers reported of devices goes with the allocation of the devices."""
    gone = _allocated_devices(old) - _allocated_devices(status)
    kept = [device for device in status.get("devices", ()) if _device_id(device) not in gone]
    status = {field: value for field, value in status.items() if field != "devices"}
    return {**status, "devices": kept} if kept else status


def _allocated_devices(status: Object) -> set[tuple[Any, ...]]:
    results = status.get("allocation", {}).get("devices", {}).get("results", ())
    return {_device_id(result) for result in results}


def _device_id(device: Object) -> tuple[Any, ...]:
    return tuple(device.get(field) for field in ("driver", "pool", "device", "shareID"))


def _take(target: Object, source: Object, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _desired(object_: Object) -> Object:
    """What an object asks for: all but its type, metadata and status."""
    ignored = _TYPE_AND_META | {"status"}
    return {field: value for field, value in object_.items() if field not in ignored}
