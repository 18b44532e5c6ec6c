"""The status of a pod, from the states of its containers. Pure.

Source: Kubernetes documentation, Pod Lifecycle.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from casaba.simulation.kubelet.container_states import ContainerState, Running, Terminated
from casaba.simulation.kubelet.container_words import POD_IP

Object = Mapping[str, Any]

Resources = Callable[[str], list[dict[str, Any]]]
"""`allocatedResourcesStatus` of a container, by its name."""


def pod_status(
    pod: Object,
    *,
    phase: str,
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    has_sandbox: bool,
    started_at: str,
    resources: Resources,
    now: str,
) -> dict[str, Any]:
    """What this kubelet says of a pod, as a strategic patch: conditions of others stay."""
    status: dict[str, Any] = {
        "phase": phase,
        "hostIP": POD_IP,
        "hostIPs": [{"ip": POD_IP}],
        "startTime": started_at,
        "conditions": _conditions(pod, phase, init, containers, has_sandbox, now),
        "containerStatuses": [
            one.status(ready=isinstance(one.state, Running), resources=resources(one.name))
            for one in containers
        ],
    }
    if has_sandbox:
        status |= {"podIP": POD_IP, "podIPs": [{"ip": POD_IP}]}
    if init:
        status["initContainerStatuses"] = [
            one.status(ready=_init_is_done(one), resources=resources(one.name)) for one in init
        ]
    return status


def phase_of(containers: Iterable[ContainerState]) -> str:
    """The phase of a pod that has not come to its end."""
    started = [one for one in containers if isinstance(one.state, Running) or one.last is not None]
    ended = [one for one in containers if isinstance(one.state, Terminated)]
    return "Running" if started or ended else "Pending"


def _init_is_done(one: ContainerState) -> bool:
    return isinstance(one.state, Running) or one.exit_code == 0


def _conditions(
    pod: Object,
    phase: str,
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    has_sandbox: bool,
    now: str,
) -> list[dict[str, Any]]:
    before = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    unready = [one.name for one in containers if not isinstance(one.state, Running)]
    uninitialized = [one.name for one in init if not _init_is_done(one)]
    states: dict[str, dict[str, str]] = {
        "PodReadyToStartContainers": {} if has_sandbox else {"status": "False"},
        "Initialized": _unless(uninitialized, "incomplete", "ContainersNotInitialized", phase),
        "Ready": _unless(unready, "unready", "ContainersNotReady", phase),
        "ContainersReady": _unless(unready, "unready", "ContainersNotReady", phase),
    }
    if phase in ("Succeeded", "Failed"):
        states["PodReadyToStartContainers"] = {"status": "False"}
    return [_condition(kind, told, before.get(kind), now) for kind, told in states.items()]


def _unless(names: Sequence[str], adjective: str, reason: str, phase: str) -> dict[str, str]:
    if phase == "Succeeded":
        done = {"reason": "PodCompleted"}
        return done if reason == "ContainersNotInitialized" else {"status": "False", **done}
    if not names:
        return {}
    message = f"containers with {adjective} status: [{' '.join(names)}]"
    return {"status": "False", "reason": reason, "message": message}


def _condition(
    kind: str, told: Mapping[str, str], before: Object | None, now: str
) -> dict[str, Any]:
    # What a condition no longer says must be taken away: a strategic patch merges it.
    silent = {"lastProbeTime": None, "reason": None, "message": None}
    condition = {"type": kind, "status": "True", **silent, **told}
    if before is not None and before["status"] == condition["status"]:
        return {**condition, "lastTransitionTime": before.get("lastTransitionTime", now)}
    return {**condition, "lastTransitionTime": now}
