"""kubectl against the simulated server: what people do, and what they are told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door
from tests.component.api_server.kubectl import Kubectl, kubectl_of

SCENARIO = Path(__file__).parents[3] / "examples" / "scenario"
CLASSES = SCENARIO.parent / "cluster" / "deviceclass.yaml"
LABELS = {"app": "x"}
NONE = "<none>"


def config_map(name: str = "one", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def kubectl(server: SimulatedApiServer, tmp_path: Path) -> Kubectl:
    """The administrator's."""
    return kubectl_of(server, tmp_path)


async def test_the_version_says_that_it_is_simulated(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.0+casaba.simulated" in await kubectl.ok("version")


async def test_resources_are_listed(kubectl: Kubectl) -> None:
    said = await kubectl("api-resources", "--api-group=resource.k8s.io")
    names = [row[0] for row in said.table[1:]]
    expected = ["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"]
    assert names == expected


async def test_the_scenario_is_applied_word_for_word(kubectl: Kubectl) -> None:
    files = ["-f", str(CLASSES)]
    for name in ("claim.yaml", "pod-native.yaml", "pod-compatible.yaml"):
        files += ["-f", str(SCENARIO / name)]
    assert (await kubectl.ok("apply", *files)).splitlines() == [
        "deviceclass.resource.k8s.io/hami-core-gpu.project-hami.io created",
        "resourceclaim.resource.k8s.io/gpu-half-claim created",
        "pod/gpu-test-dra created",
        "pod/gpu-test-compatible created",
    ]
    again = (await kubectl.ok("apply", *files)).splitlines()
    # The claim says `cores: 50` where the server keeps "50": kubectl patches to no effect.
    states = ["unchanged", "configured", "unchanged", "unchanged"]
    assert [line.split()[-1] for line in again] == states
    claims = (await kubectl("get", "resourceclaims")).table
    assert claims[0] == ["NAME", "STATE", "AGE"]
    assert claims[1][:2] == ["gpu-half-claim", "pending"]
    pods = (await kubectl("get", "po", "-o", "wide")).table
    assert pods[0][:6] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"]
    assert pods[1][:4] == ["gpu-test-compatible", "0/1", "Pending", "0"]
    assert pods[1][5:] == [NONE, NONE, NONE, NONE]
    deleted = await kubectl.ok("delete", *files)
    assert 'pod "gpu-test-dra" deleted' in deleted
    assert "No resources found" in (await kubectl("get", "all")).err


async def test_the_slice_of_the_scenario_needs_its_owner(kubectl: Kubectl) -> None:
    told = json.loads((SCENARIO / "resourceslice.json").read_text())
    owner = told["metadata"]["ownerReferences"][0]
    message = await kubectl.refused("create", "-f", "-", stdin=json.dumps(told))
    assert 'metadata.ownerReferences.uid: Invalid value: "": must not be empty' in message
    owner["uid"] = "b6f4f8d2-6f6c-4f5e-9d4c-2d0d7e1c3a4b"
    assert await kubectl.ok("create", "-f", "-", stdin=json.dumps(told))
    rows = (await kubectl("get", "resourceslices")).table
    assert rows[0] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert rows[1][1:4] == ["edge-gpu-a10", told["spec"]["driver"], "edge-gpu-a10"]
    described = await kubectl.ok("describe", "resourceslices")
    assert "Product Name:" in described
    assert "NVIDIA A10" in described


async def test_a_changed_manifest_is_applied(kubectl: Kubectl) -> None:
    name = kubectl.write("map.json", config_map(a="1", b="1"))
    assert await kubectl.ok("apply", "-f", name) == "configmap/one created"
    assert await kubectl.ok("apply", "-f", name) == "configmap/one unchanged"
    kubectl.write(name, config_map(a="2"))
    told = await kubectl("diff", "-f", name)
    assert told.code == 1
    assert '-  b: "1"' in told.out
    dry = await kubectl.ok("apply", "-f", name, "--dry-run=server")
    assert dry == "configmap/one configured (server dry run)"
    assert await kubectl.ok("apply", "-f", name) == "configmap/one configured"
    assert await kubectl.ok("get", "cm", "one", "-o", "jsonpath={.data}") == '{"a":"2"}'


async def test_server_side_apply_names_who_else_manages(kubectl: Kubectl) -> None:
    name = kubectl.write("map.json", config_map(a="1"))
    ssa = ("apply", "--server-side", "-f", name)
    assert await kubectl.ok(*ssa) == "configmap/one serverside-applied"
    kubectl.write(name, config_map(a="2"))
    message = await kubectl.refused(*ssa, "--field-manager=other")
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in message
    forced = await kubectl.ok(*ssa, "--field-manager=other", "--force-conflicts")
    assert forced == "configmap/one serverside-applied"


async def test_wrong_manifests_are_explained(kubectl: Kubectl) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad"},
        "spec": {"contaners": [], "containers": [{"name": "m", "image": "x"}]},
    }
    message = await kubectl.refused("apply", "-f", kubectl.write("pod.json", pod))
    assert 'strict decoding error: unknown field "spec.contaners"' in message
    unknown = {"apiVersion": "v1", "kind": "Nope", "metadata": {"name": "bad"}}
    message = await kubectl.refused("apply", "-f", kubectl.write("nope.json", unknown))
    assert 'no matches for kind "Nope" in version "v1"' in message
    warned = await kubectl("apply", "-f", "pod.json", "--validate=warn")
    assert warned.err == 'Warning: unknown field "spec.contaners"\n'
    assert warned.out == "pod/bad created\n"


async def test_wrong_claims_are_explained(kubectl: Kubectl) -> None:
    claim = (SCENARIO / "claim.yaml").read_text()
    lots = claim.replace('"10Gi"', "lots")
    message = await kubectl.refused("apply", "-f", "-", stdin=lots)
    assert "quantities must match the regular expression" in message
    selector = 'count: 1\n          selectors: [{cel: {expression: "device.driver =="}}]'
    message = await kubectl.refused("apply", "-f", "-", stdin=claim.replace("count: 1", selector))
    assert "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value" in message


async def test_objects_are_found(kubectl: Kubectl, door: Door) -> None:
    for name, labels in (("one", LABELS), ("two", {})):
        await door.create("/api/v1/namespaces/default/configmaps", name, labels=labels)
    assert [row[0] for row in (await kubectl("get", "cm")).table] == ["NAME", "one", "two"]
    assert [row[0] for row in (await kubectl("get", "cm", "-l", "app=x")).table][1:] == ["one"]
    found = await kubectl("get", "cm", "--field-selector", "metadata.name!=one", "-A")
    assert [row[:2] for row in found.table] == [["NAMESPACE", "NAME"], ["default", "two"]]
    assert await kubectl.ok("get", "cm", "-o", "name") == "configmap/one\nconfigmap/two"
    message = await kubectl.refused("get", "cm", "none")
    assert message == 'Error from server (NotFound): configmaps "none" not found'
    message = await kubectl.refused("get", "nope")
    assert message == 'error: the server doesn\'t have a resource type "nope"'
    message = await kubectl.refused("get", "cm", "--field-selector", "a=b")
    assert '"a" is not a known field selector' in message


async def test_a_watch_prints_what_happens(kubectl: Kubectl, door: Door) -> None:
    configs = "/api/v1/namespaces/default/configmaps"
    await door.create(configs, "first")
    async with kubectl.running("get", "cm", "-w") as process, asyncio.timeout(20):
        assert process.stdout is not None
        words = [(await process.stdout.readline()).split()[0] for _ in range(2)]
        assert words == [b"NAME", b"first"]
        await door.create(configs, "second")
        assert (await process.stdout.readline()).split()[:2] == [b"second", b"0"]


async def test_objects_are_changed_in_place(kubectl: Kubectl, door: Door) -> None:
    await door.create("/api/v1/namespaces/default/configmaps", "one")
    assert await kubectl.ok("label", "cm", "one", "color=red") == "configmap/one labeled"
    message = await kubectl.refused("label", "cm", "one", "color=blue")
    assert "already has a value (red), and --overwrite is false" in message
    assert await kubectl.ok("annotate", "cm", "one", "note=hi") == "configmap/one annotated"
    patch = ("patch", "cm", "one")
    assert await kubectl.ok(*patch, "-p", '{"data":{"z":"9"}}') == "configmap/one patched"
    remove = '[{"op":"remove","path":"/data/z"}]'
    assert await kubectl.ok(*patch, "--type=json", "-p", remove) == "configmap/one patched"
    message = await kubectl.refused(*patch, "--type=json", "-p", remove)
    assert "the server rejected our request due to an error in our request" in message
    assert await kubectl.ok("get", "cm", "one", "--show-labels", "--no-headers")


async def test_deletion_waits_for_finalizers(kubectl: Kubectl, door: Door) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    held = {"name": "held", "labels": LABELS, "finalizers": ["example.com/hold"]}
    await door.create(path, "held", metadata=held)
    delete = kubectl.running("delete", "cm", "-l", "app=x")
    async with delete as process, asyncio.timeout(20):
        seen = await door.first_lines(f"{path}?watch=1&labelSelector=app", 2)
        assert [event["type"] for event in seen] == ["ADDED", "MODIFIED"]
        assert process.returncode is None
        release = {"metadata": {"finalizers": None}}
        await door.ask(
            "PATCH", f"{path}/held", release, content_type="application/merge-patch+json"
        )
        out, _ = await process.communicate()
    assert out.decode() == 'configmap "held" deleted from default namespace\n'
    assert "NotFound" in await kubectl.refused("delete", "cm", "held")
    assert await kubectl.ok("delete", "cm", "held", "--ignore-not-found") == ""


async def test_conditions_are_waited_for(kubectl: Kubectl, door: Door) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await door.create(path, "one", data={"a": "1"})
    condition = "--for=jsonpath={.data.a}=2"
    waiting = kubectl.running("wait", condition, "cm/one", "--timeout=20s")
    async with waiting as process, asyncio.timeout(20):
        patch = {"data": {"a": "2"}}
        await door.ask("PATCH", f"{path}/one", patch, content_type="application/merge-patch+json")
        out, _ = await process.communicate()
    assert out == b"configmap/one condition met\n"


async def test_fields_are_explained(kubectl: Kubectl) -> None:
    told = await kubectl.ok("explain", "resourceclaim.spec.devices.requests")
    assert "GROUP:      resource.k8s.io" in told
    assert "exactly\t<ExactDeviceRequest>" in told


async def test_permissions_can_be_asked_for(kubectl: Kubectl) -> None:
    assert await kubectl.ok("auth", "can-i", "create", "pods") == "yes"
    said = await kubectl("auth", "can-i", "list", "pods", "--as=bob")
    assert (said.code, said.out) == (1, "no\n")
    assert "admin" in await kubectl.ok("auth", "whoami")
    listed = await kubectl.ok("auth", "can-i", "--list", "--as=bob")
    assert "selfsubjectrulesreviews.authorization.k8s.io" in listed
    assert "secrets" not in listed


async def test_a_token_can_be_had(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "serviceaccount", "robot")
    assert (await kubectl.ok("create", "token", "robot")).count(".") == 2


async def test_a_quota_is_made_and_its_use_is_shown(
    kubectl: Kubectl, server: SimulatedApiServer
) -> None:
    await kubectl.ok("create", "quota", "small", "--hard=pods=2,requests.nvidia.com/gpu=1")
    made = json.loads(await kubectl.ok("get", "quota", "small", "-o", "json"))
    hard = {"pods": "2", "requests.nvidia.com/gpu": "1"}
    assert made["spec"] == {"hard": hard}
    use = {"hard": {**hard, "limits.cpu": "4"}, "used": {"pods": "1"}}
    server.seed([{**made, "status": use}])
    shown = " ".join((await kubectl("get", "quota")).table[1])
    assert shown.startswith("small pods: 1/2, requests.nvidia.com/gpu: 0/1 limits.cpu: 0/4 ")
