"""What may change in a pod's spec once it exists (core/v1 in 1.36)."""

from collections.abc import Sequence
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation.fields import Errors, forbidden, invalid, required

_UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def changed_pod_errors(spec: Object, old: Object) -> Errors:
    """Images, a shorter deadline, more tolerations and fewer gates; nothing else."""
    for field in ("containers", "initContainers"):
        if len(spec.get(field, ())) != len(old.get(field, ())):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(field, ())):
            if not container.get("image"):
                yield required(f"spec.{field}[{index}].image")
    yield from _deadline_errors(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    kept = [_without_seconds(toleration) for toleration in spec.get("tolerations", ())]
    if any(_without_seconds(known) not in kept for known in old.get("tolerations", ())):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)
    yield from _gate_errors(spec.get("schedulingGates", ()), old.get("schedulingGates", ()))
    if _fixed(spec) != _fixed(old):
        detail = f"pod updates may not change fields other than {','.join(_UPDATABLE)}"
        yield forbidden("spec", detail)


def _deadline_errors(new_s: int | None, old_s: int | None) -> Errors:
    path = "spec.activeDeadlineSeconds"
    if old_s is not None and new_s is None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif old_s is not None and new_s is not None and new_s > old_s:
        yield invalid(path, new_s, "must be less than or equal to previous value")


def _without_seconds(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gate_errors(gates: Sequence[Object], old: Sequence[Object]) -> Errors:
    for index, gate in enumerate(gates):
        if gate not in old:
            detail = "only deletion is allowed, but found new scheduling gate"
            yield forbidden(f"spec.schedulingGates[{index}]", f"{detail} '{gate.get('name', '')}'")


def _fixed(spec: Object) -> Any:
    """The part of a spec that stays for the pod's life."""
    open_fields = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    fixed = {name: value for name, value in spec.items() if name not in open_fields}
    for field in ("containers", "initContainers"):
        fixed[field] = [{**container, "image": ""} for container in spec.get(field, ())]
    if spec.get("schedulingGates"):
        fixed.pop("nodeSelector", None)
    return fixed
