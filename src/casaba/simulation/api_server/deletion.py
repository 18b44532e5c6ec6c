"""What a deletion does to an object: it goes, or it is marked and waits. Pure.

    delete ──► marked ── last finalizer taken away, grace over ──► gone
       └─────────────── nothing to wait for ─────────────────────► gone

Source: Kubernetes API concepts, "Resource deletion"; pods also wait for their kubelet, which
ends the grace by a deletion with a period of 0.
"""

import datetime
from dataclasses import dataclass
from typing import Any

from casaba.simulation.api_server.delete_options import DeleteOptions
from casaba.simulation.api_server.kind_rules import deleted_gracefully
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, forbidden

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """The object after a delete request; `goes` if nothing holds it any more."""

    object: Object
    goes: bool


def timestamp(moment: datetime.datetime) -> str:
    """A time as metav1.Time spells it: UTC, seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def deletion(
    info: ResourceInfo, object_: Object, options: DeleteOptions, now: datetime.datetime
) -> Deletion:
    """Ask an object to go; raises ApiError 403 and 409."""
    _check_preconditions(info, object_["metadata"], options)
    if info.plural == "namespaces":
        return _namespace_deletion(object_, options, now)
    if deleted_gracefully(info):
        return _graceful(object_, options, now)
    object_ = _with_policy(object_, options)
    if not object_["metadata"].get("finalizers"):
        return Deletion(object=object_, goes=True)
    return Deletion(object=_marked(object_, 0, now), goes=False)


def goes_by_update(old: Object, new: Object) -> bool:
    """Whether an update takes away the last thing that a deletion waits for."""
    metadata = new["metadata"]
    return (
        bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
        and not old["metadata"].get("deletionGracePeriodSeconds")
        and not (new.get("kind") == "Namespace" and new.get("spec", {}).get("finalizers"))
    )


def _check_preconditions(info: ResourceInfo, metadata: Object, options: DeleteOptions) -> None:
    if options.uid is not None and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated"
        )
    elif options.resource_version not in (None, metadata["resourceVersion"]):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({metadata['resourceVersion']}). "
            "The object might have been modified"
        )
    else:
        return
    named = f"{info.kind}.{info.group}" if info.group else info.kind
    details: dict[str, Any] = {"name": metadata["name"], "kind": info.kind}
    if info.group:
        details["group"] = info.group
    message = f'Operation cannot be fulfilled on {named} "{metadata["name"]}": {why}'
    raise ApiError(409, "Conflict", message, details=details)


def _graceful(object_: Object, options: DeleteOptions, now: datetime.datetime) -> Deletion:
    metadata = object_["metadata"]
    grace_s = _grace_s(object_, options)
    if metadata.get("deletionTimestamp"):
        remaining_s = metadata.get("deletionGracePeriodSeconds")
        # Only a shorter grace can be asked for.
        if options.grace_period_s is None or remaining_s is None or grace_s >= remaining_s:
            return Deletion(object=object_, goes=False)
        object_ = _shortened(object_, grace_s)
    else:
        object_ = _marked(_with_policy(object_, options), grace_s, now, generation=1)
    goes = grace_s == 0 and not object_["metadata"].get("finalizers")
    return Deletion(object=object_, goes=goes)


def _grace_s(pod: Object, options: DeleteOptions) -> int:
    """Nothing to end, no grace: a pod without a node, or one that has ended."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName"):
        return 0
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    grace_s = options.grace_period_s
    if grace_s is None:
        grace_s = spec.get("terminationGracePeriodSeconds") or 0
    return grace_s if grace_s >= 0 else 1


def _shortened(object_: Object, grace_s: int) -> Object:
    metadata = object_["metadata"]
    due = datetime.datetime.fromisoformat(metadata["deletionTimestamp"])
    saved = datetime.timedelta(seconds=metadata["deletionGracePeriodSeconds"] - grace_s)
    sooner = {"deletionTimestamp": timestamp(due - saved), "deletionGracePeriodSeconds": grace_s}
    return {**object_, "metadata": {**metadata, **sooner}}


def _marked(
    object_: Object, grace_s: int, now: datetime.datetime, *, generation: int = 0
) -> Object:
    metadata = object_["metadata"]
    if metadata.get("deletionTimestamp"):
        return object_
    due = timestamp(now + datetime.timedelta(seconds=grace_s))
    marks: Object = {"deletionTimestamp": due, "deletionGracePeriodSeconds": grace_s}
    if generation and metadata.get("generation"):
        marks["generation"] = metadata["generation"] + generation
    return {**object_, "metadata": {**metadata, **marks}}


def _with_policy(object_: Object, options: DeleteOptions) -> Object:
    """Orphan and foreground deletion are finalizers, for the garbage collector to take away."""
    metadata = object_["metadata"]
    before = metadata.get("finalizers") or []
    kept = [name for name in before if name not in (ORPHAN, FOREGROUND)]
    match options.propagation:
        case "Orphan":
            after = [*kept, ORPHAN]
        case "Foreground":
            after = [*kept, FOREGROUND]
        case "Background":
            after = kept
        case _:
            after = before
    if after == before:
        return object_
    return {**object_, "metadata": {**metadata, "finalizers": after}}


def _namespace_deletion(
    object_: Object, options: DeleteOptions, now: datetime.datetime
) -> Deletion:
    """A namespace goes when its controller has emptied it and finalizes it."""
    object_ = _with_policy(object_, options)
    metadata = object_["metadata"]
    if metadata["name"] in _PROTECTED_NAMESPACES:
        raise forbidden(_NAMESPACES, metadata["name"], "this namespace may not be deleted")
    if not metadata.get("deletionTimestamp"):
        metadata = {**metadata, "deletionTimestamp": timestamp(now)}
        status = {**(object_.get("status") or {}), "phase": "Terminating"}
        object_ = {**object_, "metadata": metadata, "status": status}
    held = (object_.get("spec") or {}).get("finalizers") or metadata.get("finalizers")
    return Deletion(object=object_, goes=not held)


_NAMESPACES = ResourceInfo(plural="namespaces", kind="Namespace", namespaced=False)
