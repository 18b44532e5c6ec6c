"""What the verbs that write send."""

import pytest

from casaba import kube
from casaba.errors import InvalidInput
from casaba.kube import (
    NODES,
    PODS,
    RESOURCE_SLICES,
    KubeClient,
)
from tests.component.kube.recording_server import RecordingServer, Reply

pytestmark = pytest.mark.timeout(20)


async def test_create_names_the_kind(server: RecordingServer, client: KubeClient) -> None:
    slices = RESOURCE_SLICES.decoded_as(dict)
    await client.create(slices, {"metadata": {"generateName": "x-"}})
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", "/apis/resource.k8s.io/v1/resourceslices")
    assert asked.document == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "x-"},
    }


async def test_apply_is_server_side_with_our_field_manager(
    server: RecordingServer, client: KubeClient
) -> None:
    await client.apply(NODES.decoded_as(dict), "a", {"metadata": {"name": "a"}})
    await client.apply(NODES.decoded_as(dict), "a", b'{"raw":1}', force=False)
    first, second = server.asked
    assert first.method == "PATCH"
    assert first.headers["Content-Type"] == "application/apply-patch+yaml"
    assert first.query == {"fieldManager": "casaba", "force": "true"}
    assert first.document["kind"] == "Node"
    assert (second.query["force"], second.body) == ("false", b'{"raw":1}')


async def test_patches_carry_their_preconditions(
    server: RecordingServer, client: KubeClient
) -> None:
    nodes = NODES.decoded_as(dict)
    merge = {"metadata": {"labels": {"a": None}}}
    await client.patch(nodes, "a", merge, uid="u", resource_version="5")
    await client.patch(nodes, "a", [{"op": "remove", "path": "/x"}], resource_version="5")
    await client.patch(nodes, "a", {"status": {}}, subresource="status")
    merged, listed, status = server.asked
    assert merged.headers["Content-Type"] == "application/merge-patch+json"
    assert merged.document == {
        "metadata": {"labels": {"a": None}, "uid": "u", "resourceVersion": "5"}
    }
    assert listed.headers["Content-Type"] == "application/json-patch+json"
    assert listed.document == [
        {"op": "add", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "remove", "path": "/x"},
    ]
    assert (status.path, status.document) == ("/api/v1/nodes/a/status", {"status": {}})


async def test_delete_carries_its_preconditions(
    server: RecordingServer, client: KubeClient
) -> None:
    await client.delete(NODES, "a", uid="u", resource_version="5")
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/nodes/a")
    assert asked.document["preconditions"] == {"uid": "u", "resourceVersion": "5"}


async def test_delete_options(server: RecordingServer, client: KubeClient) -> None:
    await client.delete(NODES, "a", propagation="Foreground", grace_period_s=0, dry_run=True)
    await client.delete_collection(
        PODS, namespace="ns", label_selector="a=b", field_selector="c=d", propagation="Orphan"
    )
    one, many = server.asked
    assert one.document == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    assert (many.method, many.path) == ("DELETE", "/api/v1/namespaces/ns/pods")
    assert many.query == {"labelSelector": "a=b", "fieldSelector": "c=d"}
    assert many.document["propagationPolicy"] == "Orphan"


async def test_update_sends_the_whole_object(server: RecordingServer, client: KubeClient) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "5"}}
    await client.update(NODES.decoded_as(dict), "a", body, subresource="status")
    await client.update(NODES.decoded_as(dict), "a", b'{"raw":1}')
    first, second = server.asked
    assert (first.method, first.path) == ("PUT", "/api/v1/nodes/a/status")
    assert first.document == {"apiVersion": "v1", "kind": "Node", **body}
    assert second.body == b'{"raw":1}'


@pytest.mark.parametrize(
    ("subresource", "api_version", "kind"),
    [
        ("binding", "v1", "Binding"),
        ("eviction", "policy/v1", "Eviction"),
        ("token", "authentication.k8s.io/v1", "TokenRequest"),
    ],
)
async def test_subresources_that_are_created_are_of_their_own_kind(
    server: RecordingServer, client: KubeClient, subresource: str, api_version: str, kind: str
) -> None:
    pods = PODS.decoded_as(dict)
    await client.create(pods, {"x": 1}, namespace="n", name="p", subresource=subresource)
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", f"/api/v1/namespaces/n/pods/p/{subresource}")
    assert asked.document == {"apiVersion": api_version, "kind": kind, "x": 1}


async def test_every_write_can_be_dry_and_strict_and_for_another_manager(
    server: RecordingServer, client: KubeClient
) -> None:
    nodes = NODES.decoded_as(dict)
    options: kube.WriteOptions = {
        "dry_run": True,
        "field_validation": "Strict",
        "field_manager": "me",
    }
    await client.create(nodes, {}, **options)
    await client.update(nodes, "a", {}, **options)
    await client.patch(nodes, "a", {}, **options)
    await client.apply(nodes, "a", {}, **options)
    sent = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "me"}
    assert all(asked.query.items() >= sent.items() for asked in server.asked)
    assert len(server.asked) == 4


async def test_a_strategic_merge_patch(server: RecordingServer, client: KubeClient) -> None:
    nodes = NODES.decoded_as(dict)
    await client.patch(nodes, "a", {"spec": {}}, strategic=True, resource_version="5")
    asked = server.asked[0]
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.document == {"spec": {}, "metadata": {"resourceVersion": "5"}}
    with pytest.raises(ValueError, match="strategic merge patch is a dict"):
        await client.patch(nodes, "a", [], strategic=True)


async def test_each_warning_of_the_server_is_told_once(
    server: RecordingServer, client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    first = '299 - "spec.x is \\"old\\"", 299 - "y, too"'
    server.replies += [
        Reply({}, headers={"Warning": first}),
        Reply({"code": 400}, code=400, headers={"Warning": '299 - "y, too"'}),
        Reply({}, headers={"Warning": '199 - "not ours", 299 - "z"'}),
    ]
    nodes = NODES.decoded_as(dict)
    await client.create(nodes, {})
    with pytest.raises(kube.Invalid):
        await client.create(nodes, {})
    await client.create(nodes, {})
    told = [r for r in caplog.records if r.message == "kube.server_warns"]
    assert [vars(r)["warning"] for r in told] == ['spec.x is "old"', "y, too", "z"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
async def test_a_name_that_would_address_something_else_is_not_sent(
    server: RecordingServer, client: KubeClient, name: str
) -> None:
    with pytest.raises(InvalidInput, match="name of a Kubernetes object"):
        await client.delete(NODES, name)
    assert not server.asked
