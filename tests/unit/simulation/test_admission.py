"""None"""

from collections.abc import Sequence
from typing import Any

import pytest

from casaba.simulation.api_server.requests import Object, UserInfo
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.admission_world import (
    DRA,
    DRIVER,
    LABELS,
    admitted,
    config_map,
    refused,
)
from tests.unit.simulation.small_cluster import (
    ADMIN,
    ANNA,
    SmallCluster,
    pod,
    rule,
)


async def test_nothing_is_made_in_a_namespace_that_is_not_there(cluster: SmallCluster) -> None:
    error = await refused(cluster, ADMIN, "create", "configmaps", config_map(), namespace="nope")
    assert (error.code, str(error)) == (404, 'namespaces "nope" not found')


async def test_nothing_is_made_in_a_namespace_that_goes(cluster: SmallCluster) -> None:
    cluster.add_namespace("old", deletionTimestamp="2026-01-01T00:00:00Z")
    error = await refused(cluster, ADMIN, "create", "configmaps", config_map(), namespace="old")
    assert error.code == 403
    assert str(error) == (
        'configmaps "one" is forbidden: unable to create new content in namespace old because it '
        "is being terminated"
    )
    assert error.status["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace old is being terminated",
            "field": "metadata.namespace",
        }
    ]
    old = config_map()
    assert await admitted(cluster, ADMIN, "update", "configmaps", old, old, namespace="old") == old


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_first_namespaces_stay(cluster: SmallCluster, name: str) -> None:
    error = await refused(cluster, ADMIN, "delete", "namespaces", None, config_map(name))
    assert str(error) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert await admitted(cluster, ADMIN, "delete", "namespaces", None, config_map("web")) is None


def lost(key: str, **fields: Any) -> Object:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **fields}


async def test_a_pod_gets_what_it_leaves_out(cluster: SmallCluster) -> None:
    given = pod("one")
    spec = (await admitted(cluster, ADMIN, "create", "pods", given))["spec"]
    assert spec == {
        **given["spec"],
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            lost("node.kubernetes.io/not-ready", tolerationSeconds=300),
            lost("node.kubernetes.io/unreachable", tolerationSeconds=300),
        ],
    }


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([{"operator": "Exists"}], []),
        ([lost("node.kubernetes.io/not-ready")], ["node.kubernetes.io/unreachable"]),
        (
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
    ],
)
async def test_a_pod_s_own_patience_is_kept(
    cluster: SmallCluster, tolerations: list[Object], added: Sequence[str]
) -> None:
    given = pod("one", tolerations=tolerations)
    spec = (await admitted(cluster, ADMIN, "create", "pods", given))["spec"]
    assert spec["tolerations"][: len(tolerations)] == tolerations
    assert [each["key"] for each in spec["tolerations"][len(tolerations) :]] == list(added)


async def test_a_pod_is_as_important_as_its_class(cluster: SmallCluster) -> None:
    given = pod("one", priorityClassName="system-node-critical")
    spec = (await admitted(cluster, ADMIN, "create", "pods", given))["spec"]
    assert spec["priority"] == 2000001000


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"serviceAccountName": "nope"},
            'error looking up service account default/nope: serviceaccount "nope" not found',
        ),
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name",
        ),
    ],
)
async def test_a_pod_that_asks_for_what_is_not_there_is_refused(
    cluster: SmallCluster, spec: Object, why: str
) -> None:
    error = await refused(cluster, ADMIN, "create", "pods", pod("one", **spec))
    assert (error.code, str(error)) == (403, f'pods "one" is forbidden: {why}')


def claim(*, admin: bool = False, status: Object | None = None) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": admin}}
    plain = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    return plain if status is None else {**plain, "status": status}


@pytest.mark.parametrize(
    ("plural", "object_", "field"),
    [
        ("resourceclaims", claim(admin=True), "spec"),
        (
            "resourceclaimtemplates",
            {"metadata": {"name": "c"}, "spec": {"spec": claim(admin=True)["spec"]}},
            "spec.spec",
        ),
    ],
)
async def test_admin_access_needs_a_labelled_namespace(
    cluster: SmallCluster, plural: str, object_: Object, field: str
) -> None:
    cluster.add_namespace("free", labels=LABELS)
    assert await admitted(cluster, ADMIN, "create", plural, object_, namespace="free") == object_
    error = await refused(cluster, ADMIN, "create", plural, object_)
    assert error.code == 422
    assert str(error).endswith(
        f"is invalid: {field}.devices.requests[0].adminAccess: Forbidden: admin access to devices "
        "requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
    )


ALLOCATED = {
    "allocation": {
        "devices": {"results": []},
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["edge-1"]}]}
            ]
        },
    }
}

DEVICE = {"driver": DRIVER, "pool": "edge-1", "device": "gpu-0"}


async def status_written(
    cluster: SmallCluster, user: UserInfo, new: Object, old: Object | None = None
) -> Any:
    return await admitted(
        cluster,
        user,
        "patch",
        "resourceclaims",
        claim(status=new),
        claim(status=old or ALLOCATED),
        subresource="status",
    )


@pytest.mark.parametrize("new", [{}, {**ALLOCATED, "reservedFor": [{"name": "p"}]}])
async def test_only_who_may_bind_allocates_and_reserves(cluster: SmallCluster, new: Object) -> None:
    cluster.grant(ANNA, rule("patch", "resourceclaims/status", DRA))
    with pytest.raises(ApiError) as refusal:
        await status_written(cluster, ANNA, new)
    assert str(refusal.value) == (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing '
        'status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
        'verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "anna" cannot '
        'patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster '
        "scope"
    )
    cluster.grant(ANNA, rule("patch", "resourceclaims/binding", DRA))
    await status_written(cluster, ANNA, new)


@pytest.mark.parametrize("new", [{**ALLOCATED, "devices": [DEVICE]}, ALLOCATED])
async def test_only_who_may_speak_for_a_driver_reports_its_devices(
    cluster: SmallCluster, new: Object
) -> None:
    old = ALLOCATED if "devices" in new else {**ALLOCATED, "devices": [DEVICE]}
    with pytest.raises(ApiError) as refusal:
        await status_written(cluster, ANNA, new, old)
    assert str(refusal.value) == (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.devices: Forbidden: changing '
        'status.devices requires resource="resourceclaims/driver", '
        'verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io '
        f'"{DRIVER}" is forbidden: User "anna" cannot arbitrary-node:patch resource '
        '"resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"'
    )
    verbs = "arbitrary-node:patch"
    cluster.grant(ANNA, rule(verbs, "resourceclaims/driver", DRA, resourceNames=[DRIVER]))
    await status_written(cluster, ANNA, new, old)


@pytest.mark.parametrize(("node", "allowed"), [("edge-1", True), ("edge-2", False)])
async def test_a_driver_s_pod_reports_the_devices_of_its_own_node(
    cluster: SmallCluster, node: str, allowed: bool
) -> None:
    agent = UserInfo(
        username="system:serviceaccount:default:agent",
        groups=("system:serviceaccounts",),
        extra={"authentication.kubernetes.io/node-name": (node,)},
    )
    verbs = "associated-node:patch"
    cluster.grant(agent, rule(verbs, "resourceclaims/driver", DRA, resourceNames=[DRIVER]))
    new = {**ALLOCATED, "devices": [DEVICE]}
    if allowed:
        await status_written(cluster, agent, new)
        return
    with pytest.raises(ApiError, match="arbitrary-node:patch"):
        await status_written(cluster, agent, new)
