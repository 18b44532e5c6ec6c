"""The row of a pod. Source of the STATUS column's rules: printPod of kube-apiserver."""

from collections.abc import Iterable, Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.tables.columns import (
    AGE,
    NAME,
    Cells,
    Printer,
    age,
    at,
    column,
    since,
    text,
    wide,
)

_COLUMNS = (
    NAME,
    column("Ready", "Containers that are ready, of all."),
    column("Status", "What the pod as a whole is doing."),
    column("Restarts", "Restarts of its containers, and how long ago the last one was."),
    AGE,
    wide("IP", "The pod's address."),
    wide("Node", "Where it runs."),
    wide("Nominated Node", "Where room is being made for it."),
    wide("Readiness Gates", "Conditions met, of those that readiness needs."),
)
_ENDED = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}
_NODE_LOST = "NodeLost"


def _cells(pod: Object, now_s: float) -> Cells:
    starting, init_problem = _initialisation(pod)
    counted = _counted_statuses(pod, starting)
    return [
        pod["metadata"]["name"],
        f"{_ready(pod, starting)}/{_total(pod)}",
        _status(pod, starting, init_problem),
        _restarts(counted, now_s),
        age(pod, now_s),
        _ip(pod),
        text(pod, "spec", "nodeName") or "<none>",
        text(pod, "status", "nominatedNodeName") or "<none>",
        _gates(pod),
    ]


def _conditions(pod: Object) -> list[Object]:
    ended = _ENDED.get(text(pod, "status", "phase"))
    if ended is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": ended[0], "message": ended[1]}]


PODS = Printer(columns=_COLUMNS, cells=_cells, conditions=_conditions)


def _init_statuses(pod: Object) -> Sequence[Object]:
    return at(pod, "status", "initContainerStatuses") or ()


def _statuses(pod: Object) -> Sequence[Object]:
    return at(pod, "status", "containerStatuses") or ()


def _sidecars(pod: Object) -> set[str]:
    """Init containers that go on running beside the others."""
    containers = at(pod, "spec", "initContainers") or ()
    return {item["name"] for item in containers if item.get("restartPolicy") == "Always"}


def _total(pod: Object) -> int:
    return len(at(pod, "spec", "containers") or ()) + len(_sidecars(pod))


def _has_condition(pod: Object, type_: str) -> bool:
    for condition in at(pod, "status", "conditions") or ():
        if condition["type"] == type_:
            return bool(condition["status"] == "True")
    return False


def _initialisation(pod: Object) -> tuple[bool, str]:
    """Whether init containers are still at work, and the status that this makes."""
    sidecars = _sidecars(pod)
    for index, status in enumerate(_init_statuses(pod)):
        if at(status, "state", "terminated", "exitCode") == 0:
            continue
        if status["name"] in sidecars and status.get("started"):
            continue
        return not _has_condition(pod, "Initialized"), _init_problem(pod, index, status)
    return False, ""


def _init_problem(pod: Object, index: int, status: Object) -> str:
    terminated = at(status, "state", "terminated")
    if terminated is not None:
        return f"Init:{_ending(terminated)}"
    waiting = text(status, "state", "waiting", "reason")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{len(at(pod, 'spec', 'initContainers') or ())}"


def _ending(terminated: Object) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_running(status: Object) -> bool:
    """A container that counts as ready: no reason to wait, not ended."""
    state = status.get("state") or {}
    if text(state, "waiting", "reason") or state.get("terminated") is not None:
        return False
    return bool(status.get("ready") and state.get("running") is not None)


def _ready(pod: Object, starting: bool) -> int:
    ready = 0
    sidecars = _sidecars(pod)
    for status in _init_statuses(pod):
        if at(status, "state", "terminated", "exitCode") == 0:
            continue
        if not (status["name"] in sidecars and status.get("started")):
            break
        ready += bool(status.get("ready"))
    return ready if starting else ready + sum(_is_running(status) for status in _statuses(pod))


def _status(pod: Object, starting: bool, init_problem: str) -> str:
    reason = init_problem or _own_reason(pod)
    if not starting:
        reason = _containers_reason(pod, reason)
    if at(pod, "metadata", "deletionTimestamp"):
        if text(pod, "status", "reason") == _NODE_LOST:
            return "Unknown"
        if text(pod, "status", "phase") not in _ENDED:
            return "Terminating"
    return reason


def _own_reason(pod: Object) -> str:
    for condition in at(pod, "status", "conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _containers_reason(pod: Object, reason: str) -> str:
    """The first container that has something to say speaks for the pod."""
    failed = ""
    statuses = _statuses(pod)
    for status in reversed(statuses):
        terminated = at(status, "state", "terminated")
        if waiting := text(status, "state", "waiting", "reason"):
            reason = waiting
        elif terminated is not None:
            reason = _ending(terminated)
            failed = reason if terminated.get("exitCode") else failed
    if reason != "Completed":
        return reason
    return _completed(pod, failed, any(_is_running(status) for status in statuses))


def _completed(pod: Object, failed: str, running: bool) -> str:
    """Some containers completed: what the others do counts for more."""
    if running and _has_condition(pod, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _counted_statuses(pod: Object, starting: bool) -> list[Object]:
    """Whose restarts count: init containers while they are at work, then all that keep running."""
    if starting:
        return list(_visited_init_statuses(pod))
    sidecars = _sidecars(pod)
    inits = [item for item in _visited_init_statuses(pod) if item["name"] in sidecars]
    return [*inits, *_statuses(pod)]


def _visited_init_statuses(pod: Object) -> Iterable[Object]:
    """Up to and with the first one that is still at work."""
    sidecars = _sidecars(pod)
    for status in _init_statuses(pod):
        yield status
        over = at(status, "state", "terminated", "exitCode") == 0
        if not over and not (status["name"] in sidecars and status.get("started")):
            return


def _restarts(statuses: Sequence[Object], now_s: float) -> str:
    count = sum(status.get("restartCount", 0) for status in statuses)
    ends = [text(status, "lastState", "terminated", "finishedAt") for status in statuses]
    last = max(ends, default="")
    return f"{count} ({since(last, now_s)} ago)" if count and last else str(count)


def _ip(pod: Object) -> str:
    ips = at(pod, "status", "podIPs") or [{}]
    return ips[0].get("ip") or "<none>"


def _gates(pod: Object) -> str:
    gates = at(pod, "spec", "readinessGates") or ()
    if not gates:
        return "<none>"
    met = sum(_has_condition(pod, gate["conditionType"]) for gate in gates)
    return f"{met}/{len(gates)}"
