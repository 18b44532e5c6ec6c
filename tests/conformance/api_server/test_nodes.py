"""What a kubelet may do: with its own node, its pods and its slices, and nothing else."""

from tests.conformance.api_server.door import Answer, ApiDoor, Object, later
from tests.conformance.api_server.objects import CLAIMS, claim, made, pod

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


async def _as_node(
    api: ApiDoor, node: str, method: str, path: str, body: Object | None = None
) -> Answer:
    headers = {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": "system:nodes"}
    patch = method == "PATCH"
    content_type = "application/merge-patch+json" if patch else "application/json"
    return await api.call(method, path, body, headers=headers, content_type=content_type)


def _slice(api: ApiDoor, node: str) -> Object:
    spec = {
        "driver": "driver.example",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [],
    }
    return {"metadata": {"name": api.name("slice")}, "spec": spec}


async def _made_node(api: ApiDoor, suffix: str = "node") -> str:
    name = api.name(suffix)
    await made(api, "/api/v1/nodes", {"metadata": {"name": name}})
    return name


async def test_a_kubelet_reports_its_own_node(api: ApiDoor) -> None:
    node = await _made_node(api)
    status = {"status": {"nodeInfo": {"kubeletVersion": "v1"}}}
    path = f"/api/v1/nodes/{node}/status"
    told = (await _as_node(api, node, "PATCH", path, status)).object()
    assert told["status"]["nodeInfo"]["kubeletVersion"] == "v1"


async def test_a_kubelet_cannot_report_another_node(api: ApiDoor) -> None:
    node = await _made_node(api)
    answer = await _as_node(api, "other", "PATCH", f"/api/v1/nodes/{node}/status", {"status": {}})
    message = answer.refused(403, "Forbidden")
    assert message == (
        f'nodes "{node}" is forbidden: node "other" is not allowed to modify node "{node}"'
    )


async def test_a_kubelet_cannot_taint_its_node(api: ApiDoor) -> None:
    node = await _made_node(api)
    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    answer = await _as_node(api, node, "PATCH", f"/api/v1/nodes/{node}", taints)
    assert "is not allowed to modify taints" in answer.refused(403, "Forbidden")


async def test_a_kubelet_publishes_slices_of_its_node_only(api: ApiDoor) -> None:
    node = await _made_node(api)
    answer = await _as_node(api, "other", "POST", SLICES, _slice(api, node))
    answer.refused(403, "Forbidden")
    (await _as_node(api, node, "POST", SLICES, _slice(api, node))).object(201)


async def test_a_kubelet_lists_slices_of_its_node_only(api: ApiDoor) -> None:
    node = await _made_node(api)
    await made(api, SLICES, _slice(api, node))
    (await _as_node(api, node, "GET", SLICES)).refused(403, "Forbidden")
    query = f"?fieldSelector=spec.nodeName%3D{node}"
    told = (await _as_node(api, node, "GET", f"{SLICES}{query}")).object()
    assert [item["metadata"]["name"] for item in told["items"]] == [api.name("slice")]
    (await _as_node(api, "other", "GET", f"{SLICES}{query}")).refused(403, "Forbidden")


async def test_a_kubelet_deletes_the_slices_of_its_node(api: ApiDoor) -> None:
    node = await _made_node(api)
    await made(api, SLICES, _slice(api, node))
    query = f"?fieldSelector=spec.nodeName%3D{node}"
    (await _as_node(api, "other", "DELETE", f"{SLICES}{query}")).refused(403, "Forbidden")
    (await _as_node(api, node, "DELETE", f"{SLICES}{query}")).object()
    assert (await api.get(f"{SLICES}{query}")).object()["items"] == []


async def test_a_kubelet_renews_its_own_lease(api: ApiDoor) -> None:
    node = await _made_node(api)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    body = {"metadata": {"name": node}, "spec": {"holderIdentity": node}}
    (await _as_node(api, "other", "POST", leases, body)).refused(403, "Forbidden")
    (await _as_node(api, node, "POST", leases, body)).object(201)
    (await _as_node(api, node, "GET", f"{leases}/{node}")).object()
    (await _as_node(api, "other", "GET", f"{leases}/{node}")).refused(403, "Forbidden")
    await api.delete(f"{leases}/{node}")


async def test_a_kubelet_reports_its_own_pods(api: ApiDoor) -> None:
    node = await _made_node(api)
    await made(api, api.core("pods"), pod("one", node=node))
    path = f"{api.core('pods', 'one')}/status"
    body = {"status": {"message": "hello"}}
    (await _as_node(api, "other", "PATCH", path, body)).refused(403, "Forbidden")
    told = (await _as_node(api, node, "PATCH", path, body)).object()
    assert told["status"]["message"] == "hello"
    await api.delete(api.core("pods", "one"), {"gracePeriodSeconds": 0})


async def test_a_kubelet_reads_claims_of_its_pods_only(api: ApiDoor) -> None:
    node = await _made_node(api)
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("used"))
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("unused"))
    body = pod("one", node=node)
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "used"}]
    await made(api, api.core("pods"), body)
    used = api.named(CLAIMS, "resourceclaims", "used")
    (await later(lambda: _as_node(api, node, "GET", used), 200)).object()
    unused = api.named(CLAIMS, "resourceclaims", "unused")
    (await _as_node(api, node, "GET", unused)).refused(403, "Forbidden")
    await api.delete(api.core("pods", "one"), {"gracePeriodSeconds": 0})


async def test_a_kubelet_creates_no_ordinary_pods(api: ApiDoor) -> None:
    node = await _made_node(api)
    answer = await _as_node(api, node, "POST", api.core("pods"), pod("one", node=node))
    assert "can only create mirror pods" in answer.refused(403, "Forbidden")
