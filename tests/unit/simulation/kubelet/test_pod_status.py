"""The status of a pod from the states of its containers."""

from typing import Any

from casaba.simulation.kubelet.container_states import (
    ContainerState,
    Running,
    Terminated,
    Waiting,
    restored,
)
from casaba.simulation.kubelet.pod_status import phase_of, pod_status

RUNNING = Running(started_at="then", container_id="id")
ENDED = Terminated(exit_code=1, reason="Error", started_at="a", finished_at="b", container_id="old")


def one(state: Any = None, name: str = "c", **fields: Any) -> ContainerState:
    return ContainerState(name=name, image="i", state=state or Waiting(), **fields)


def status(*containers: ContainerState, pod: Any = None, **fields: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"phase": "Running", "init": [], "has_sandbox": True, **fields}
    return pod_status(
        pod or {},
        containers=containers,
        started_at="start",
        resources=lambda _: [],
        now="now",
        **asked,
    )


def conditions(told: dict[str, Any]) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in told["conditions"]}


def test_a_pod_is_pending_until_a_container_has_run() -> None:
    assert phase_of([one(), one()]) == "Pending"
    assert phase_of([one(RUNNING), one()]) == "Running"
    assert phase_of([one(ENDED), one()]) == "Running"
    assert phase_of([one(last=ENDED)]) == "Running"


def test_unready_containers_are_named() -> None:
    told = status(one(RUNNING), one(name="d"), one(ENDED, name="e"))
    ready = next(entry for entry in told["conditions"] if entry["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
    assert ready["message"] == "containers with unready status: [d e]"


def test_a_pod_that_succeeded_is_complete_not_ready() -> None:
    told = status(one(ENDED), phase="Succeeded", init=[one(name="i")])
    assert conditions(told) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
    }


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    before = [
        {"type": "Ready", "status": "True", "lastTransitionTime": "before"},
        {"type": "Initialized", "status": "False", "lastTransitionTime": "before"},
    ]
    told = status(one(RUNNING), pod={"status": {"conditions": before}})
    times = {entry["type"]: entry["lastTransitionTime"] for entry in told["conditions"]}
    assert (times["Ready"], times["Initialized"]) == ("before", "now")


def test_there_is_no_address_before_there_is_a_sandbox() -> None:
    assert "podIP" not in status(one(), has_sandbox=False)


def test_the_end_before_is_remembered() -> None:
    state = one(ENDED).now(Waiting(reason="CrashLoopBackOff")).now(RUNNING)
    told = state.status(ready=True, resources=[])
    assert told["lastState"]["terminated"]["containerID"] == "old"
    assert told["containerID"] == "id"


def test_what_an_earlier_kubelet_told_is_taken_over() -> None:
    running = {"name": "c", "state": {"running": {"startedAt": "a"}}, "restartCount": 2}
    found = restored("c", "i", running, "now")
    assert (found.exit_code, found.restarts) == (137, 2)
    again = restored("c", "i", one(ENDED, restarts=1).status(ready=False, resources=[]), "now")
    assert again == one(ENDED, restarts=1)
    assert restored("c", "i", None, "now") == one()
