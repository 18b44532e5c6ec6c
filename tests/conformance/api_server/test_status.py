"""Status and spec are written through different doors; generation counts changes of the spec."""

from tests.conformance.api_server.door import ApiDoor, Object
from tests.conformance.api_server.objects import CLAIMS, allocation, claim, made, pod

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def _slice(name: str, devices: int, **metadata: object) -> Object:
    spec = {
        "driver": "driver.example",
        "nodeName": "none-of-them",
        "pool": {"name": "none-of-them", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    return {"metadata": {"name": name, **metadata}, "spec": spec}


async def test_a_new_object_has_no_status_of_its_own(api: ApiDoor) -> None:
    body = {**claim("one"), "status": {"allocation": allocation()}}
    told = await made(api, api.named(CLAIMS, "resourceclaims"), body)
    assert told["status"] == {}


async def test_an_update_leaves_the_status(api: ApiDoor) -> None:
    path = api.named(CLAIMS, "resourceclaims", "one")
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    (await api.patch(f"{path}/status", {"status": {"allocation": allocation()}})).object()
    body = {"metadata": {"labels": {"a": "1"}}, "status": {"allocation": None}}
    told = (await api.patch(path, body)).object()
    assert told["metadata"]["labels"] == {"a": "1"}
    assert told["status"]["allocation"] == allocation()


async def test_an_update_of_the_status_leaves_the_rest(api: ApiDoor) -> None:
    path = api.core("pods", "one")
    first = await made(api, api.core("pods"), pod("one"))
    body = {"spec": {"activeDeadlineSeconds": 7}, "status": {"message": "hello"}}
    told = (await api.patch(f"{path}/status", body)).object()
    assert told["spec"] == first["spec"]
    assert told["status"]["message"] == "hello"


async def test_the_status_can_be_read_by_itself(api: ApiDoor) -> None:
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    path = api.named(CLAIMS, "resourceclaims", "one")
    assert (await api.get(f"{path}/status")).object() == (await api.get(path)).object()


async def test_the_status_can_be_put(api: ApiDoor) -> None:
    path = api.named(CLAIMS, "resourceclaims", "one")
    told = await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    told["status"] = {"allocation": allocation()}
    told = (await api.put(f"{path}/status", told)).object()
    assert told["status"]["allocation"] == allocation()
    stale = {**told, "metadata": {**told["metadata"], "resourceVersion": "1"}, "status": {}}
    (await api.put(f"{path}/status", stale)).refused(409, "Conflict")


async def test_a_kind_without_a_status_has_no_door_to_it(api: ApiDoor) -> None:
    answer = await api.patch(api.core("configmaps", "one") + "/status", {})
    message = answer.refused(404, "NotFound")
    assert message == "the server could not find the requested resource"


async def test_generation_counts_changes_of_the_spec(api: ApiDoor) -> None:
    name = api.name("slice")
    first = await made(api, SLICES, _slice(name, 1))
    assert first["metadata"]["generation"] == 1
    changed = {**first, "spec": _slice(name, 2)["spec"]}
    second = (await api.put(f"{SLICES}/{name}", changed)).object()
    assert second["metadata"]["generation"] == 2
    third = (await api.patch(f"{SLICES}/{name}", {"metadata": {"labels": {"a": "1"}}})).object()
    assert third["metadata"]["generation"] == 2


async def test_generation_cannot_be_set(api: ApiDoor) -> None:
    name = api.name("slice")
    first = await made(api, SLICES, _slice(name, 1, generation=9))
    assert first["metadata"]["generation"] == 1
    told = (await api.patch(f"{SLICES}/{name}", {"metadata": {"generation": 9}})).object()
    assert told["metadata"]["generation"] == 1


async def test_a_pod_has_a_generation(api: ApiDoor) -> None:
    told = await made(api, api.core("pods"), pod("one"))
    assert told["metadata"]["generation"] == 1
    path = api.core("pods", "one")
    told = (await api.patch(path, {"spec": {"activeDeadlineSeconds": 7}})).object()
    assert told["metadata"]["generation"] == 2
    told = (await api.patch(f"{path}/status", {"status": {"message": "hello"}})).object()
    assert told["metadata"]["generation"] == 2


async def test_a_claim_has_no_generation(api: ApiDoor) -> None:
    told = await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    assert "generation" not in told["metadata"]
