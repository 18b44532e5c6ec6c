"""What kubectl prints: columns and cells of each kind."""

import pytest

from tests.conformance.api_server.door import STRATEGIC_PATCH, TABLE, ApiDoor, Object
from tests.conformance.api_server.objects import (
    CLAIMS,
    allocation,
    claim,
    made,
    made_config_map,
    pod,
)

ROLES = "/apis/rbac.authorization.k8s.io/v1"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
COLUMNS = {
    "/api/v1/pods": "Name Ready Status Restarts Age | IP|Node|Nominated Node|Readiness Gates",
    "/api/v1/nodes": (
        "Name Status Roles Age Version "
        "| Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime"
    ),
    "/api/v1/namespaces": "Name Status Age |",
    "/api/v1/configmaps": "Name Data Age |",
    "/api/v1/secrets": "Name Type Data Age |",
    "/api/v1/serviceaccounts": "Name Age |",
    "/api/v1/resourcequotas": "Name Request Limit Age |",
    "/apis/coordination.k8s.io/v1/leases": "Name Holder Age |",
    "/apis/resource.k8s.io/v1/deviceclasses": "Name Age |",
    "/apis/resource.k8s.io/v1/resourceslices": "Name Node Driver Pool Age |",
    "/apis/resource.k8s.io/v1/resourceclaims": "Name State Age |",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates": "Name Age |",
    f"{ROLES}/clusterrolebindings": "Name Role Age | Users|Groups|ServiceAccounts",
    f"{ROLES}/rolebindings": "Name Role Age | Users|Groups|ServiceAccounts",
    f"{HOOKS}/mutatingwebhookconfigurations": "Name Webhooks Age |",
    f"{HOOKS}/validatingwebhookconfigurations": "Name Webhooks Age |",
}


async def _row(api: ApiDoor, path: str) -> list[object]:
    told = (await api.get(path, accept=TABLE)).object()
    (row,) = told["rows"]
    cells: list[object] = row["cells"]
    return cells


@pytest.mark.parametrize("path", COLUMNS)
async def test_a_kind_has_its_columns(api: ApiDoor, path: str) -> None:
    told = (await api.get(path, accept=TABLE)).object()
    always, wide = (
        [column["name"] for column in told["columnDefinitions"] if column["priority"] == priority]
        for priority in (0, 1)
    )
    assert f"{' '.join(always)} | {'|'.join(wide)}".strip() == COLUMNS[path]


async def test_events_have_their_columns(api: ApiDoor) -> None:
    told = (await api.get(api.core("events"), accept=TABLE)).object()
    found = [(column["name"], column["priority"]) for column in told["columnDefinitions"]]
    always = [("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0)]
    wide = [("Subobject", 1), ("Source", 1), ("Message", 0), ("First Seen", 1), ("Count", 1)]
    assert found == [*always, *wide, ("Name", 1)]


async def test_roles_show_when_they_were_made(api: ApiDoor) -> None:
    told = (await api.get(f"{ROLES}/clusterroles", accept=TABLE)).object()
    found = [(column["name"], column["type"]) for column in told["columnDefinitions"]]
    assert found == [("Name", "string"), ("Created At", "date")]


async def test_a_table_has_kind_version_and_metadata(api: ApiDoor) -> None:
    await made_config_map(api)
    one = (await api.get(api.core("configmaps", "one"), accept=TABLE)).object()
    assert (one["kind"], one["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    row = one["rows"][0]["object"]
    assert row["kind"] == "PartialObjectMetadata"
    assert one["metadata"]["resourceVersion"] == row["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("include", "kind"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")],
)
async def test_rows_hold_what_was_asked_for(api: ApiDoor, include: str, kind: str | None) -> None:
    await made_config_map(api)
    path = f"{api.core('configmaps', 'one')}?includeObject={include}"
    told = (await api.get(path, accept=TABLE)).object()
    held = told["rows"][0]["object"]
    assert (held and held["kind"]) == kind


async def test_rows_cannot_hold_anything_else(api: ApiDoor) -> None:
    answer = await api.get(f"{api.core('configmaps')}?includeObject=Some", accept=TABLE)
    message = answer.refused(400, "BadRequest")
    assert message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Some": must be '
        "'Metadata', 'Object', 'None', or empty"
    )


async def test_pages_of_tables_go_on(api: ApiDoor) -> None:
    for name in "abc":
        await made_config_map(api, name)
    told = (await api.get(f"{api.core('configmaps')}?limit=2", accept=TABLE)).object()
    assert len(told["rows"]) == 2
    assert told["metadata"]["continue"]
    assert told["metadata"]["remainingItemCount"] >= 1


async def test_cells_of_small_kinds(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1", "b": "2"})
    assert (await _row(api, api.core("configmaps", "one")))[:2] == ["one", 2]
    secret = {"metadata": {"name": "one"}, "stringData": {"a": "1"}}
    await made(api, api.core("secrets"), secret)
    assert (await _row(api, api.core("secrets", "one")))[:3] == ["one", "Opaque", 1]
    lease = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "me"}}
    await made(api, api.named("coordination.k8s.io/v1", "leases"), lease)
    path = api.named("coordination.k8s.io/v1", "leases", "one")
    assert (await _row(api, path))[:2] == ["one", "me"]


async def test_cells_of_a_claim(api: ApiDoor) -> None:
    path = api.named(CLAIMS, "resourceclaims", "one")
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    assert (await _row(api, path))[1] == "pending"
    user = {"resource": "things", "name": "a", "uid": "a"}
    for status, state in (
        ({"allocation": allocation()}, "allocated"),
        ({"reservedFor": [user]}, "allocated,reserved"),
    ):
        (await api.patch(f"{path}/status", {"status": status})).object()
        assert (await _row(api, path))[1] == state


async def test_cells_of_a_slice(api: ApiDoor) -> None:
    name = api.name("slice")
    spec = {
        "driver": "driver.example",
        "nodeName": "none-of-them",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "devices": [],
    }
    path = "/apis/resource.k8s.io/v1/resourceslices"
    await made(api, path, {"metadata": {"name": name}, "spec": spec})
    cells = await _row(api, f"{path}/{name}")
    assert cells[:4] == [name, "none-of-them", "driver.example", "pool"]


async def test_cells_of_an_event(api: ApiDoor) -> None:
    body = {
        "metadata": {"name": "one"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "reason": "Tested",
        "message": "It was tested. ",
        "type": "Normal",
        "source": {"component": "tester", "host": "here"},
        "count": 3,
    }
    await made(api, api.core("events"), body)
    cells = await _row(api, api.core("events", "one"))
    assert cells == [
        "<unknown>",
        "Normal",
        "Tested",
        "pod/p",
        "",
        "tester, here",
        "It was tested.",
        "<unknown>",
        3,
        "one",
    ]


async def test_cells_of_bindings(api: ApiDoor) -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    body = {"metadata": {"name": "one"}, "roleRef": role, "subjects": subjects}
    group = "rbac.authorization.k8s.io/v1"
    await made(api, api.named(group, "rolebindings"), body)
    cells = await _row(api, api.named(group, "rolebindings", "one"))
    assert [*cells[:2], *cells[3:]] == ["one", "ClusterRole/view", "u", "g", "n/s"]


async def test_cells_of_a_node(api: ApiDoor) -> None:
    name = api.name("node")
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": True}}
    await made(api, "/api/v1/nodes", body)
    path = f"/api/v1/nodes/{name}"
    cells = await _row(api, path)
    assert cells[1:3] == ["Unknown,SchedulingDisabled", "edge,worker"]
    assert cells[4:] == ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "amd64"},
    }
    (await api.patch(f"{path}/status", {"status": status}, STRATEGIC_PATCH)).object()
    cells = await _row(api, path)
    assert cells[1] == "Ready,SchedulingDisabled"
    assert cells[4:6] == ["v1", "10.0.0.1"]
    assert cells[8] == "6.1 (amd64)"


def _state(ready: bool, **state: Object) -> Object:
    return {"name": "main", "image": "", "imageID": "", "ready": ready, "restartCount": 0} | {
        "state": state
    }


def _ended(code: int, **fields: object) -> Object:
    return _state(False, terminated={"exitCode": code, **fields})


POD_STATUSES: dict[str, tuple[Object, list[str]]] = {
    "pending": ({"phase": "Pending"}, ["0/1", "Pending", "0"]),
    "creating": (
        {"containerStatuses": [_state(False, waiting={"reason": "ContainerCreating"})]},
        ["0/1", "ContainerCreating", "0"],
    ),
    "running": (
        {"phase": "Running", "containerStatuses": [_state(True, running={})]},
        ["1/1", "Running", "0"],
    ),
    "crashing": (
        {
            "phase": "Running",
            "containerStatuses": [
                {**_state(False, waiting={"reason": "CrashLoopBackOff"}), "restartCount": 4}
            ],
        },
        ["0/1", "CrashLoopBackOff", "4"],
    ),
    "completed": (
        {"phase": "Succeeded", "containerStatuses": [_ended(0, reason="Completed")]},
        ["0/1", "Completed", "0"],
    ),
    "failed": (
        {"phase": "Failed", "containerStatuses": [_ended(1, reason="Error")]},
        ["0/1", "Error", "0"],
    ),
    "killed": (
        {"phase": "Failed", "containerStatuses": [_ended(137, signal=9)]},
        ["0/1", "Signal:9", "0"],
    ),
    "exit code": (
        {"phase": "Failed", "containerStatuses": [_ended(3)]},
        ["0/1", "ExitCode:3", "0"],
    ),
    "evicted": ({"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0"]),
    "gated": (
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
        ["0/1", "SchedulingGated", "0"],
    ),
}


@pytest.mark.parametrize("case", POD_STATUSES)
async def test_cells_of_a_pod(api: ApiDoor, case: str) -> None:
    status, cells = POD_STATUSES[case]
    await made(api, api.core("pods"), pod("one", node="none-of-them"))
    path = api.core("pods", "one")
    (await api.patch(f"{path}/status", {"status": status})).object()
    assert (await _row(api, path))[1:4] == cells
    await api.delete(path, {"gracePeriodSeconds": 0})


INIT_STATUSES: dict[str, tuple[list[Object], list[str]]] = {
    "first": ([_state(False, running={})], ["0/1", "Init:0/2", "0"]),
    "second": (
        [_ended(0, reason="Completed"), {**_state(False, running={}), "name": "late"}],
        ["0/1", "Init:1/2", "0"],
    ),
    "failed": ([_ended(1, reason="Error")], ["0/1", "Init:Error", "0"]),
    "exit code": ([_ended(3)], ["0/1", "Init:ExitCode:3", "0"]),
    "waiting": (
        [{**_state(False, waiting={"reason": "ImagePullBackOff"}), "restartCount": 2}],
        ["0/1", "Init:ImagePullBackOff", "2"],
    ),
}


@pytest.mark.parametrize("case", INIT_STATUSES)
async def test_cells_of_a_pod_that_begins(api: ApiDoor, case: str) -> None:
    statuses, cells = INIT_STATUSES[case]
    body = pod("one", node="none-of-them")
    image = "registry.example/nothing:1"
    body["spec"]["initContainers"] = [{"name": name, "image": image} for name in ("early", "late")]
    await made(api, api.core("pods"), body)
    path = api.core("pods", "one")
    named = [
        {**status, "name": name} for status, name in zip(statuses, ("early", "late"), strict=False)
    ]
    status = {"status": {"phase": "Pending", "initContainerStatuses": named}}
    (await api.patch(f"{path}/status", status)).object()
    assert (await _row(api, path))[1:4] == cells
    await api.delete(path, {"gracePeriodSeconds": 0})


async def test_a_deleted_pod_is_terminating(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node="none-of-them"))
    path = api.core("pods", "one")
    (await api.delete(path)).object()
    cells = await _row(api, path)
    assert cells[2] == "Terminating"
    assert cells[5:] == ["<none>", "none-of-them", "<none>", "<none>"]
    await api.delete(path, {"gracePeriodSeconds": 0})


async def test_a_finished_pod_is_told_as_completed(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node="none-of-them"))
    path = api.core("pods", "one")
    (await api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})).object()
    (row,) = (await api.get(path, accept=TABLE)).object()["rows"]
    (condition,) = row["conditions"]
    assert (condition["type"], condition["reason"]) == ("Completed", "Succeeded")
    await api.delete(path, {"gracePeriodSeconds": 0})
