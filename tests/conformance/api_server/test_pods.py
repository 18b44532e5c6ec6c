"""Pods: defaults, what may change, binding and eviction."""

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import made, pod

NODE = "none-of-them"


def _binding(name: str, node: str = NODE) -> dict[str, object]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"metadata": {"name": name}, "target": target}


async def _gone(api: ApiDoor, name: str = "one") -> None:
    await api.delete(api.core("pods", name), {"gracePeriodSeconds": 0})


async def test_a_pod_gets_its_defaults(api: ApiDoor) -> None:
    told = await made(api, api.core("pods"), pod("one"))
    spec = told["spec"]
    assert (spec["restartPolicy"], spec["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert (spec["terminationGracePeriodSeconds"], spec["serviceAccountName"]) == (30, "default")
    container = spec["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}
    assert told["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_pod_tolerates_sick_nodes_for_a_while(api: ApiDoor) -> None:
    told = await made(api, api.core("pods"), pod("one"))
    found = {(item["key"], item["tolerationSeconds"]) for item in told["spec"]["tolerations"]}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    assert found == {(key, 300) for key in keys}


async def test_the_latest_image_is_always_pulled(api: ApiDoor) -> None:
    body = pod("one")
    body["spec"]["containers"][0]["image"] = "registry.example/nothing"
    told = await made(api, api.core("pods"), body)
    assert told["spec"]["containers"][0]["imagePullPolicy"] == "Always"


async def test_most_of_a_pod_cannot_change(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    answer = await api.patch(api.core("pods", "one"), {"spec": {"restartPolicy": "Never"}})
    message = answer.refused(422, "Invalid")
    assert message.startswith('Pod "one" is invalid: spec: Forbidden: pod updates may not change ')
    assert answer.causes == [("FieldValueForbidden", "spec")]


async def test_the_image_of_a_pod_may_change(api: ApiDoor) -> None:
    first = await made(api, api.core("pods"), pod("one"))
    first["spec"]["containers"][0]["image"] = "registry.example/other:1"
    told = (await api.put(api.core("pods", "one"), first)).object()
    assert told["spec"]["containers"][0]["image"] == "registry.example/other:1"


async def test_tolerations_of_a_pod_may_only_grow(api: ApiDoor) -> None:
    first = await made(api, api.core("pods"), pod("one"))
    more = {"key": "example.com/a", "operator": "Exists"}
    first["spec"]["tolerations"].append(more)
    told = (await api.put(api.core("pods", "one"), first)).object()
    assert more in told["spec"]["tolerations"]
    told["spec"]["tolerations"].remove(more)
    (await api.put(api.core("pods", "one"), told)).refused(422, "Invalid")


async def test_a_binding_gives_a_pod_its_node(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    answer = await api.post(f"{api.core('pods', 'one')}/binding", _binding("one"))
    assert answer.object(201)["status"] == "Success"
    told = (await api.get(api.core("pods", "one"))).object()
    assert told["spec"]["nodeName"] == NODE
    scheduled = [item for item in told["status"]["conditions"] if item["type"] == "PodScheduled"]
    assert scheduled[0]["status"] == "True"
    await _gone(api)


async def test_bindings_can_be_posted_for_the_whole_namespace(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    answer = await api.post(api.core("bindings"), _binding("one"))
    assert answer.status in (201, 404), answer.text
    await _gone(api)


async def test_a_bound_pod_cannot_be_bound_again(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    answer = await api.post(f"{api.core('pods', 'one')}/binding", _binding("one", "another"))
    message = answer.refused(409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to '
        f'node "{NODE}"'
    )
    await _gone(api)


async def test_a_missing_pod_cannot_be_bound(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('pods', 'none')}/binding", _binding("none"))
    assert answer.refused(404, "NotFound") == 'pods "none" not found'


async def test_an_eviction_deletes_a_pod(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    answer = await api.post(f"{api.core('pods', 'one')}/eviction", body)
    assert answer.object(201)["status"] == "Success"
    (await api.get(api.core("pods", "one"))).refused(404, "NotFound")


async def test_an_evicted_pod_on_a_node_gets_its_grace(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "one"},
        "deleteOptions": {"gracePeriodSeconds": 9},
    }
    (await api.post(f"{api.core('pods', 'one')}/eviction", body)).object(201)
    told = (await api.get(api.core("pods", "one"))).object()
    assert told["metadata"]["deletionGracePeriodSeconds"] == 9
    await _gone(api)


async def test_an_eviction_of_another_name_is_refused(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "two"}}
    answer = await api.post(f"{api.core('pods', 'one')}/eviction", body)
    answer.refused(400, "BadRequest")


async def test_a_pod_without_a_node_has_an_empty_log(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    answer = await api.get(f"{api.core('pods', 'one')}/log")
    assert (answer.status, answer.text) == (204, "")


async def test_logs_need_a_container_where_there_are_several(api: ApiDoor) -> None:
    body = pod("one", node=NODE)
    body["spec"]["containers"].append({"name": "second", "image": "registry.example/nothing:1"})
    await made(api, api.core("pods"), body)
    message = (await api.get(f"{api.core('pods', 'one')}/log")).refused(400, "BadRequest")
    assert message == (
        "a container name must be specified for pod one, choose one of: [main second]"
    )
    answer = await api.get(f"{api.core('pods', 'one')}/log?container=third")
    assert answer.refused(400, "BadRequest") == "container third is not valid for pod one"
    await _gone(api)
