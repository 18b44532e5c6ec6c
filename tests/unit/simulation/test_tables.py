"""Rows of tables: ages, and what becomes of odd objects."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo, find_resource
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.tables import table
from casaba.simulation.api_server.tables.columns import duration

NOW_S = 1_700_000_000.0
MADE = datetime.fromtimestamp(NOW_S - 90, UTC).isoformat().replace("+00:00", "Z")
LISTED = [info for info in RESOURCES if "list" in info.verbs]


@pytest.mark.parametrize(
    ("span_s", "text"),
    [
        (-5, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400 + 86400, "8y"),
    ],
)
def test_spans_read_as_kubectl_prints_them(span_s: float, text: str) -> None:
    assert duration(span_s) == text


@given(st.floats(min_value=-1e4, max_value=1e10))
def test_every_span_is_short(span_s: float) -> None:
    assert 0 < len(duration(span_s)) <= 9


def _info(plural: str, group: str = "") -> ResourceInfo:
    info = find_resource(group, "v1", plural)
    assert info is not None
    return info


def _cells(info: ResourceInfo, object_: dict[str, Any]) -> list[Any]:
    (row,) = table(info, [object_], "7", "None", now_s=NOW_S)["rows"]
    cells: list[Any] = row["cells"]
    return cells


@pytest.mark.parametrize("info", LISTED, ids=lambda info: info.plural)
def test_a_bare_object_fills_all_columns(info: ResourceInfo) -> None:
    bare = {"metadata": {"name": "a", "creationTimestamp": MADE}}
    told = table(info, [bare], "7", "Object", now_s=NOW_S)
    (row,) = told["rows"]
    assert len(row["cells"]) == len(told["columnDefinitions"])
    assert row["object"] is bare
    assert "a" in row["cells"]


@pytest.mark.parametrize("info", LISTED, ids=lambda info: info.plural)
def test_empty_parts_are_as_good_as_missing_ones(info: ResourceInfo) -> None:
    metadata = {"name": "a", "creationTimestamp": MADE}
    empty = {"metadata": metadata, "spec": {}, "status": {}, "data": None, "webhooks": None}
    assert _cells(info, empty) == _cells(info, {"metadata": metadata})


def test_a_page_tells_how_it_goes_on() -> None:
    told = table(_info("configmaps"), [], "7", "", continue_token="t", remaining=3)
    assert told["metadata"] == {
        "resourceVersion": "7",
        "continue": "t",
        "remainingItemCount": 3,
    }
    assert told["rows"] == []


def test_columns_are_told_once_in_a_watch() -> None:
    told = table(_info("configmaps"), [], "7", "", with_columns=False)
    assert told["columnDefinitions"] is None


def test_an_unknown_wish_for_objects_is_refused() -> None:
    with pytest.raises(ApiError, match="must be 'Metadata', 'Object', 'None', or empty"):
        table(_info("pods"), [], "7", "Some")


def _status(name: str, restarts: int = 0, ready: bool = True, **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


def _pod(spec: dict[str, Any], status: dict[str, Any], **metadata: Any) -> list[Any]:
    metadata = {"name": "p", "creationTimestamp": MADE, **metadata}
    return _cells(_info("pods"), {"metadata": metadata, "spec": spec, "status": status})


RUNNING: dict[str, Any] = {"running": {}}
COMPLETED: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
TWO = {"containers": [{"name": "a"}, {"name": "b"}]}


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = {"terminated": {"finishedAt": MADE}}
    status = _status("a", restarts=3, **RUNNING) | {"lastState": ended}
    cells = _pod({"containers": [{"name": "a"}]}, {"containerStatuses": [status]})
    assert cells[3] == "3 (90s ago)"


@pytest.mark.parametrize(
    ("ready_condition", "expected"), [("True", "Running"), ("False", "NotReady")]
)
def test_a_pod_of_which_one_completed_is_what_the_others_are(
    ready_condition: str, expected: str
) -> None:
    statuses = [_status("a", **RUNNING), _status("b", ready=False, **COMPLETED)]
    conditions = [{"type": "Ready", "status": ready_condition}]
    status = {"phase": "Running", "containerStatuses": statuses, "conditions": conditions}
    assert _pod(TWO, status)[1:3] == ["1/2", expected]


def test_the_first_container_that_failed_speaks_for_the_pod() -> None:
    failed: dict[str, Any] = {"terminated": {"exitCode": 1, "reason": "OOMKilled"}}
    statuses = [_status("a", ready=False, **COMPLETED), _status("b", ready=False, **failed)]
    assert _pod(TWO, {"phase": "Failed", "containerStatuses": statuses})[2] == "OOMKilled"


def test_a_sidecar_counts_as_a_container() -> None:
    spec = {
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}],
    }
    status = {
        "phase": "Running",
        "initContainerStatuses": [_status("s", restarts=1, **RUNNING) | {"started": True}],
        "containerStatuses": [_status("a", **RUNNING)],
    }
    assert _pod(spec, status)[1:4] == ["2/2", "Running", "1"]


def test_a_pod_of_a_lost_node_is_unknown() -> None:
    status = {"phase": "Running", "reason": "NodeLost"}
    assert _pod(TWO, status, deletionTimestamp=MADE)[2] == "Unknown"


def test_readiness_gates_are_counted() -> None:
    spec = {**TWO, "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]}
    status = {"conditions": [{"type": "x", "status": "True"}, {"type": "y", "status": "False"}]}
    assert _pod(spec, status)[8] == "1/2"
