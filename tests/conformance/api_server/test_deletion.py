"""Deletion: finalizers, graces, preconditions, collections, dependents."""

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import made, made_config_map, pod

FINALIZER = "example.com/hold"
# No such node: its pods wait for a kubelet that never comes.
NODE = "none-of-them"


async def test_a_deleted_object_is_gone(api: ApiDoor) -> None:
    first = await made_config_map(api)
    told = (await api.delete(api.core("configmaps", "one"))).object()
    assert (told["kind"], told["status"]) == ("Status", "Success")
    details = {"name": "one", "kind": "configmaps", "uid": first["metadata"]["uid"]}
    assert told["details"] == details
    (await api.get(api.core("configmaps", "one"))).refused(404, "NotFound")


async def test_a_deleted_quota_is_told(api: ApiDoor) -> None:
    quota = {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "2"}}}
    assert (await made(api, api.core("resourcequotas"), quota))["spec"] == quota["spec"]
    told = (await api.delete(api.core("resourcequotas", "one"))).object()
    assert (told["kind"], told["spec"]) == ("ResourceQuota", quota["spec"])


async def test_a_missing_object_cannot_be_deleted(api: ApiDoor) -> None:
    answer = await api.delete(api.core("configmaps", "none"))
    assert answer.refused(404, "NotFound") == 'configmaps "none" not found'


async def test_a_finalizer_holds_an_object(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    metadata = (await api.delete(path)).object()["metadata"]
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    told = (await api.get(path)).object()
    assert told["metadata"] == metadata
    gone = (await api.patch(path, {"metadata": {"finalizers": None}})).object()
    assert "finalizers" not in gone["metadata"]
    (await api.get(path)).refused(404, "NotFound")


async def test_a_second_deletion_of_a_held_object_changes_nothing(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    first = (await api.delete(path)).object()
    assert (await api.delete(path)).object() == first
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_no_finalizer_can_be_added_to_a_deleted_object(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    (await api.delete(path)).object()
    more = {"metadata": {"finalizers": [FINALIZER, "example.com/more"]}}
    message = (await api.patch(path, more)).refused(422, "Invalid")
    assert message == (
        'ConfigMap "one" is invalid: metadata.finalizers: Forbidden: no new finalizers can be '
        'added if the object is being deleted, found new finalizers []string{"example.com/more"}'
    )
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_held_object_can_still_be_changed(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    (await api.delete(path)).object()
    assert (await api.patch(path, {"data": {"a": "1"}})).object()["data"] == {"a": "1"}
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_deletion_time_cannot_be_taken_back(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    deleted = (await api.delete(path)).object()
    told = (await api.patch(path, {"metadata": {"deletionTimestamp": None}})).object()
    assert told["metadata"]["deletionTimestamp"] == deleted["metadata"]["deletionTimestamp"]
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_held_object_shows_as_modified_then_deleted(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=[FINALIZER])
    path = api.core("configmaps", "one")
    async with api.watch(f"{api.core('configmaps')}?fieldSelector=metadata.name%3Done") as watch:
        assert await watch.named() == ("ADDED", "one")
        (await api.delete(path)).object()
        assert await watch.named() == ("MODIFIED", "one")
        (await api.patch(path, {"metadata": {"finalizers": None}})).object()
        assert await watch.named() == ("DELETED", "one")


async def test_a_deletion_can_demand_an_identity(api: ApiDoor) -> None:
    first = await made_config_map(api)
    uid = first["metadata"]["uid"]
    path = api.core("configmaps", "one")
    message = (await api.delete(path, {"preconditions": {"uid": "other"}})).refused(409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (other) '
        f"does not match the UID in record ({uid}). The object might have been deleted and then "
        "recreated"
    )
    (await api.delete(path, {"preconditions": {"uid": uid}})).object()


async def test_a_deletion_can_demand_a_version(api: ApiDoor) -> None:
    first = await made_config_map(api)
    version = first["metadata"]["resourceVersion"]
    path = api.core("configmaps", "one")
    answer = await api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert answer.refused(409, "Conflict") == (
        'Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the '
        f"precondition (1) does not match the ResourceVersion in record ({version}). The object "
        "might have been modified"
    )
    (await api.delete(path, {"preconditions": {"resourceVersion": version}})).object()


async def test_an_unknown_propagation_policy_is_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.delete(api.core("configmaps", "one"), {"propagationPolicy": "Some"})
    assert answer.refused(422, "Invalid") == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Some": '
        'supported values: "Foreground", "Background", "Orphan", "nil"'
    )


async def test_a_collection_is_deleted_by_label(api: ApiDoor) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await made_config_map(api, name, labels={"test": label})
    told = (await api.delete(f"{api.core('configmaps')}?labelSelector=test%3Dx")).object()
    assert told["kind"] == "ConfigMapList"
    assert sorted(item["metadata"]["name"] for item in told["items"]) == ["a", "b"]
    left = (await api.get(f"{api.core('configmaps')}?labelSelector=test")).object()
    assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


async def test_held_objects_of_a_collection_stay(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels={"test": "1"}, finalizers=[FINALIZER])
    (await api.delete(f"{api.core('configmaps')}?labelSelector=test")).object()
    path = api.core("configmaps", "a")
    assert (await api.get(path)).object()["metadata"]["deletionTimestamp"]
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_pod_that_nobody_runs_is_deleted_at_once(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one"))
    (await api.delete(api.core("pods", "one"))).object()
    (await api.get(api.core("pods", "one"))).refused(404, "NotFound")


async def test_a_pod_on_a_node_gets_its_grace(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    path = api.core("pods", "one")
    metadata = (await api.delete(path)).object()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"] > metadata["creationTimestamp"]
    assert (await api.get(path)).object()["metadata"]["deletionTimestamp"]
    (await api.delete(path, {"gracePeriodSeconds": 0})).object()
    (await api.get(path)).refused(404, "NotFound")


async def test_the_grace_of_a_pod_can_be_given(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    path = api.core("pods", "one")
    told = (await api.delete(path, {"gracePeriodSeconds": 7})).object()
    assert told["metadata"]["deletionGracePeriodSeconds"] == 7
    told = (await api.delete(f"{path}?gracePeriodSeconds=3")).object()
    assert told["metadata"]["deletionGracePeriodSeconds"] == 3
    await api.delete(path, {"gracePeriodSeconds": 0})


async def test_a_grace_cannot_be_made_longer(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    path = api.core("pods", "one")
    (await api.delete(path, {"gracePeriodSeconds": 5})).object()
    told = (await api.delete(path, {"gracePeriodSeconds": 50})).object()
    assert told["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.delete(path, {"gracePeriodSeconds": 0})


async def test_a_finished_pod_is_deleted_at_once(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    path = api.core("pods", "one")
    (await api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})).object()
    (await api.delete(path)).object()
    (await api.get(path)).refused(404, "NotFound")


async def test_foreground_deletion_waits_for_the_collector(api: ApiDoor) -> None:
    owner = await made(api, api.core("pods"), pod("owner", finalizers=[FINALIZER]))
    path = api.core("pods", "owner")
    told = (await api.delete(path, {"propagationPolicy": "Foreground"})).object()
    assert "foregroundDeletion" in told["metadata"]["finalizers"]
    assert told["metadata"]["uid"] == owner["metadata"]["uid"]
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_two_controllers_cannot_own_one_object(api: ApiDoor) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
        for name in ("a", "b")
    ]
    body = {"metadata": {"name": "one", "ownerReferences": owners}}
    message = (await api.post(api.core("configmaps"), body)).refused(422, "Invalid")
    assert message.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for '
        "Pod/a and Pod/b"
    )


async def test_a_collection_is_deleted_by_field(api: ApiDoor) -> None:
    for name in ("a", "b"):
        await made_config_map(api, name, labels={"test": "1"})
    query = "?labelSelector=test&fieldSelector=metadata.name%3Da"
    (await api.delete(f"{api.core('configmaps')}{query}")).object()
    left = (await api.get(f"{api.core('configmaps')}?labelSelector=test")).object()
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_a_collection_of_pods_on_a_node_gets_its_grace(api: ApiDoor) -> None:
    await made(api, api.core("pods"), pod("one", node=NODE))
    (await api.delete(api.core("pods"), {"gracePeriodSeconds": 4})).object()
    told = (await api.get(api.core("pods", "one"))).object()
    assert told["metadata"]["deletionGracePeriodSeconds"] == 4
    await api.delete(api.core("pods", "one"), {"gracePeriodSeconds": 0})
