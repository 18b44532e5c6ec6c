"""Namespaces: what they get at birth, and how they end."""

import asyncio

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import config_map, made, made_config_map

NAMESPACES = "/api/v1/namespaces"


async def test_a_namespace_is_born_active(api: ApiDoor) -> None:
    told = (await api.get(f"{NAMESPACES}/{api.namespace}")).object()
    assert told["status"] == {"phase": "Active"}
    assert told["spec"] == {"finalizers": ["kubernetes"]}
    assert told["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}


async def test_the_label_with_its_name_cannot_be_changed(api: ApiDoor) -> None:
    path = f"{NAMESPACES}/{api.namespace}"
    labels = {"kubernetes.io/metadata.name": "other", "mine": "1"}
    told = (await api.patch(path, {"metadata": {"labels": labels}})).object()
    assert told["metadata"]["labels"] == {
        "kubernetes.io/metadata.name": api.namespace,
        "mine": "1",
    }


async def test_an_object_in_a_missing_namespace_is_refused(api: ApiDoor) -> None:
    answer = await api.post(f"{NAMESPACES}/none-of-them/configmaps", config_map("one"))
    assert answer.refused(404, "NotFound") == 'namespaces "none-of-them" not found'


async def test_the_namespaces_of_every_cluster_are_there(api: ApiDoor) -> None:
    told = (await api.get(NAMESPACES)).object()
    names = {item["metadata"]["name"] for item in told["items"]}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names


async def test_default_cannot_be_deleted(api: ApiDoor) -> None:
    answer = await api.delete(f"{NAMESPACES}/default")
    message = answer.refused(403, "Forbidden")
    assert message == 'namespaces "default" is forbidden: this namespace may not be deleted'


async def _ending(api: ApiDoor) -> str:
    """A namespace that is deleted, and held by an object of its own."""
    name = api.name("ending")
    await made(api, NAMESPACES, {"metadata": {"name": name}})
    held = config_map("held", finalizers=["example.com/hold"])
    await made(api, f"{NAMESPACES}/{name}/configmaps", held)
    (await api.delete(f"{NAMESPACES}/{name}")).object()
    return name


async def _let_go(api: ApiDoor, name: str) -> None:
    path = f"{NAMESPACES}/{name}/configmaps/held"
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_deleted_namespace_is_terminating(api: ApiDoor) -> None:
    name = await _ending(api)
    told = (await api.get(f"{NAMESPACES}/{name}")).object()
    assert told["status"]["phase"] == "Terminating"
    assert told["metadata"]["deletionTimestamp"]
    assert told["spec"]["finalizers"] == ["kubernetes"]
    await _let_go(api, name)


async def test_nothing_new_goes_into_a_terminating_namespace(api: ApiDoor) -> None:
    name = await _ending(api)
    answer = await api.post(f"{NAMESPACES}/{name}/configmaps", config_map("one"))
    message = answer.refused(403, "Forbidden")
    assert message == (
        f'configmaps "one" is forbidden: unable to create new content in namespace {name} because '
        "it is being terminated"
    )
    cause = answer.json["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("NamespaceTerminating", "metadata.namespace")
    await _let_go(api, name)


async def test_the_namespace_goes_with_its_last_finalizer(api: ApiDoor) -> None:
    name = await _ending(api)
    path = f"{NAMESPACES}/{name}"
    while True:
        told = (await api.get(path)).object()
        answer = await api.put(f"{path}/finalize", {**told, "spec": {"finalizers": []}})
        if answer.status != 409:
            break
        await asyncio.sleep(0)
    assert answer.object()["spec"] == {}
    (await api.get(path)).refused(404, "NotFound")
    # What is left inside can still be changed.
    assert (await api.get(f"{path}/configmaps/held")).status in (200, 404)
    await _let_go(api, name)


async def test_names_are_free_in_another_namespace(api: ApiDoor) -> None:
    await made_config_map(api)
    other = api.name("other")
    await made(api, NAMESPACES, {"metadata": {"name": other}})
    told = await made(api, f"{NAMESPACES}/{other}/configmaps", config_map("one"))
    assert told["metadata"]["namespace"] == other


async def test_namespaces_cannot_be_deleted_all_at_once(api: ApiDoor) -> None:
    message = (await api.delete(NAMESPACES)).refused(405, "MethodNotAllowed")
    assert message == "the server does not allow this method on the requested resource"
