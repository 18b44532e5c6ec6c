"""What containers on a simulated kubelet get of their devices, and who is told of it."""

import json
import os
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from casaba.kube import EVENTS
from casaba.wire._proto import podresources_v1_pb2 as messages
from tests.component.simulation.kubelets import NODE, NodeUnderTest, shell, until
from tests.component.simulation.plugins import DRIVER, ScriptedPlugin

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")


async def registered(plugin: ScriptedPlugin) -> None:
    async def told() -> bool:
        return bool(plugin.told)

    await until("the plugin hears of its registration", told)


def write_spec(node: NodeUnderTest, claim: dict[str, Any], **edits: Any) -> Path:
    """Define the device of a claim; the folder that the spec is in."""
    (folder,) = node.settings.cdi_dirs
    folder.mkdir(exist_ok=True)
    device = {"name": claim["metadata"]["uid"], "containerEdits": edits}
    spec = {"cdiVersion": "0.5.0", "kind": "example.com/gpu", "devices": [device]}
    (folder / "example.json").write_text(json.dumps(spec))
    (folder / "broken.json").write_text("{")
    (folder / "other.yaml").write_text("just a text")
    return folder


@pytest.mark.parametrize("isolation", ["environment", pytest.param("namespace", marks=needs_root)])
async def test_programs_and_libraries_are_found(node: NodeUnderTest, isolation: str) -> None:
    async with node.running(isolation=isolation), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        folder = node.settings.cdi_dirs[0]
        program = folder / "tool"
        mounts = [{"hostPath": str(program), "containerPath": "/usr/bin/tool-of-the-device"}]
        write_spec(node, claim, mounts=mounts, env=["CARD=42"])
        program.write_text("#!/bin/sh\necho card $CARD\n")
        program.chmod(0o755)
        script = "tool-of-the-device"
        pod = await node.run_pod(shell(script, "one"), claims=["one"])
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod) == "card 42\n"
    assert not Path("/usr/bin/tool-of-the-device").exists()


@needs_root
async def test_what_is_mounted_read_only_stays_as_it_is(node: NodeUnderTest) -> None:
    async with node.running(isolation="namespace"), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        folder = node.settings.cdi_dirs[0]
        mounts = [
            {
                "hostPath": str(folder / name),
                "containerPath": f"/run/of-the-device/{name}",
                "options": [name, "bind"],
            }
            for name in ("ro", "rw")
        ]
        write_spec(node, claim, mounts=mounts)
        for name in ("ro", "rw"):
            (folder / name).write_text("before\n")
        script = "cd /run/of-the-device; echo after > rw; echo after > ro"
        pod = await node.run_pod(shell(script, "one"), claims=["one"])
        await node.pod_in_phase(pod, "Failed")
        assert (folder / "ro").read_text() == "before\n"
        assert (folder / "rw").read_text() == "after\n"


async def test_hooks_are_told_as_not_run(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        hook = {"hookName": "createContainer", "path": "/bin/hook", "args": ["hook", "go"]}
        write_spec(node, await node.add_claim("one"), hooks=[hook])
        pod = await node.run_pod(shell("exit 0", "one"), claims=["one"])
        await node.pod_in_phase(pod, "Succeeded")
        told = await node.message(pod, "HooksLeftOut")
        assert told.endswith("not run by the simulated kubelet: CDI hooks /bin/hook go")


MISSING = {
    "device": (
        {"deviceNodes": [{"path": "/dev/of-nobody"}]},
        'failed to stat CDI host device "/dev/of-nobody": no such file or directory',
    ),
    "mount": (
        {"mounts": [{"hostPath": "/of/nobody", "containerPath": "/x"}]},
        'error mounting "/of/nobody" to rootfs at "/x": no such file or directory',
    ),
}


@pytest.mark.parametrize("kind", MISSING)
async def test_what_is_missing_on_the_host_is_named(node: NodeUnderTest, kind: str) -> None:
    edits, message = MISSING[kind]
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        write_spec(node, await node.add_claim("one"), **edits)
        pod = await node.run_pod(shell("exit 0", "one"), claims=["one"])
        status = await node.container_state(pod, "CreateContainerError")
        assert status["state"]["waiting"]["message"].endswith(message)
        await node.delete(pod)


async def test_monitoring_sees_which_container_has_which_device(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        write_spec(node, claim)
        pod = await node.run_pod(
            shell("exec sleep 1000", "one"), shell("exec sleep 1000", name="b"), claims=["one"]
        )
        await node.pod_in_phase(pod, "Running")
        (told,) = (await call(node, "List")).pod_resources
        assert (told.namespace, told.name) == ("default", pod["metadata"]["name"])
        assert [one.name for one in told.containers] == ["main", "b"]
        (resource,) = told.containers[0].dynamic_resources
        assert (resource.claim_namespace, resource.claim_name) == ("default", "one")
        (device,) = resource.claim_resources
        assert (device.driver_name, device.pool_name, device.device_name) == (DRIVER, NODE, "gpu-0")
        assert device.cdi_devices[0].name == f"example.com/gpu={claim['metadata']['uid']}"
        assert len(told.containers[1].dynamic_resources) == 0
        wanted = {"pod_namespace": "default", "pod_name": pod["metadata"]["name"]}
        assert (await call(node, "Get", **wanted)).pod_resources == told
        with pytest.raises(grpc.aio.AioRpcError, match="pod no in namespace default not found"):
            await call(node, "Get", pod_namespace="default", pod_name="no")
        await node.delete(pod)

        async def forgotten() -> bool:
            return not (await call(node, "List")).pod_resources

        await until("the pod is forgotten", forgotten)


async def call(node: NodeUnderTest, method: str, **fields: str) -> Any:
    """A call of the PodResources API, by grpcio."""
    request = getattr(messages, f"{method}PodResourcesRequest")(**fields)
    answer = getattr(messages, f"{method}PodResourcesResponse")
    target = f"unix://{node.settings.pod_resources_socket}"
    async with grpc.aio.insecure_channel(target) as channel:
        return await channel.unary_unary(
            f"/v1.PodResourcesLister/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )(request, timeout=10)


async def test_the_node_says_how_it_isolates_containers(node: NodeUnderTest) -> None:
    async with node.running():

        async def told() -> str | None:
            events = EVENTS.decoded_as(dict)
            listed = await node.client.list(events, namespace="default")
            found = [item["message"] for item in listed.items if item["reason"] == "Simulated"]
            return found[0] if found else None

        message = await until("the node tells it", told)
        assert "limits hold for programs that keep LD_PRELOAD" in message
