"""Pods on a simulated kubelet: processes, restarts, logs, ends."""

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from casaba.errors import InvalidInput
from casaba.kube import CONFIG_MAPS, LEASES, NODES, PODS, KubeError, Refused
from casaba.settings.simulation import LocalImage
from tests.component.simulation.kubelets import NODE, NodeUnderTest, shell, until


async def test_a_pod_runs_to_its_end(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod(shell("echo to stdout; echo to stderr >&2; exit 3"))
        ended = await node.pod_in_phase(pod, "Failed")
        (status,) = ended["status"]["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 3
        assert sorted((await node.logs(pod)).splitlines()) == ["to stderr", "to stdout"]
        await node.delete(pod)


async def test_a_pod_that_succeeded_is_complete(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod(shell("exit 0"))
        ended = await node.pod_in_phase(pod, "Succeeded")
        (ready,) = [one for one in ended["status"]["conditions"] if one["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")
        assert not ready.get("message")


async def test_a_running_pod_is_ready_and_told_of(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod(shell("exec sleep 1000"))
        status = (await node.pod_in_phase(pod, "Running"))["status"]
        told = {one["type"]: one["status"] for one in status["conditions"]}
        assert told["Ready"] == told["ContainersReady"] == told["Initialized"] == "True"
        assert (status["podIP"], status["hostIP"]) == ("127.0.0.1", "127.0.0.1")
        assert status["startTime"]
        await node.message(pod, "Started: Container started")
        await node.delete(pod)


async def test_a_name_that_is_no_images_is_told_as_in_a_cluster(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod({**shell("exit 0"), "image": "Not An Image"})
        status = await node.container_state(pod, "InvalidImageName")
        assert "couldn't parse image name" in status["state"]["waiting"]["message"]
        await node.message(pod, "InspectFailed: Failed to apply default image tag")
        await node.message(pod, "Failed: Error: InvalidImageName")
        assert not any(told.startswith("Pulled") for told in await node.messages(pod))
        await node.delete(pod)


async def test_what_a_container_asks_for_in_vain_is_told(node: NodeUnderTest) -> None:
    async with node.running():
        probe = {"exec": {"command": ["false"]}}
        pod = await node.run_pod({**shell("exit 0"), "readinessProbe": probe})
        await node.message(pod, "LeftOut: the simulated kubelet knows no readinessProbe")
        await node.delete(pod)


async def test_the_node_is_there_and_breathes(node: NodeUnderTest) -> None:
    async with node.running(labels={"gpu": "on"}, lease_renewal_s=0.05):
        found = await node.node()
        assert found is not None
        assert found["metadata"]["labels"]["gpu"] == "on"
        assert found["metadata"]["annotations"]["casaba.dev/simulated-isolation"] == "environment"
        assert found["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.0+casaba.simulated"

        async def renewed() -> str | None:
            with contextlib.suppress(KubeError):
                lease = await node.client.get(LEASES, NODE, namespace="kube-node-lease")
                return lease.spec.renew_time
            return None

        first = await until("there is a lease", renewed)

        async def again() -> bool:
            return bool(await renewed() != first)

        await until("the lease is renewed", again)


async def test_a_node_that_was_given_up_is_ready_again(node: NodeUnderTest) -> None:
    async with node.running(lease_renewal_s=0.05):
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await node.client.patch(
            NODES,
            NODE,
            {"status": {"conditions": [condition]}},
            subresource="status",
            strategic=True,
        )

        async def ready() -> bool:
            conditions = (await node.node() or {})["status"]["conditions"]
            told = {one["type"]: one["status"] for one in conditions}
            return bool(told["Ready"] == "True")

        await until("the node is ready again", ready)


async def test_init_containers_come_first_and_in_order(node: NodeUnderTest) -> None:
    async with node.running():
        trace = node.settings.root / "trace"
        init = [shell(f"echo {name} >> {trace}", name=name) for name in ("first", "second")]
        init.append(shell(f"until test -e {trace}-go; do sleep 0.05; done", name="third"))
        pod = await node.run_pod(shell(f"echo main >> {trace}"), initContainers=init)
        await node.container_state(pod, "PodInitializing")
        Path(f"{trace}-go").touch()
        await node.pod_in_phase(pod, "Succeeded")
        assert trace.read_text().split() == ["first", "second", "main"]


async def test_a_failed_init_container_ends_the_pod(node: NodeUnderTest) -> None:
    async with node.running():
        init = [shell("exit 4", name="init")]
        pod = await node.run_pod(shell("exit 0"), initContainers=init)
        status = (await node.pod_in_phase(pod, "Failed"))["status"]
        assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


async def test_a_sidecar_runs_as_long_as_the_pod(node: NodeUnderTest) -> None:
    async with node.running():
        sidecar = shell("exec sleep 1000", name="sidecar", restartPolicy="Always")
        pod = await node.run_pod(shell("exit 0"), initContainers=[sidecar])
        await node.pod_in_phase(pod, "Succeeded")


async def test_a_crashing_container_is_started_again_after_a_while(node: NodeUnderTest) -> None:
    async with node.running(crash_backoff_s=0.2):
        counter = node.settings.root / "runs"
        script = f"echo run >> {counter}; wc -l < {counter}; test $(wc -l < {counter}) = 3"
        pod = await node.run_pod(shell(script), restartPolicy="OnFailure")
        status = await node.container_state(pod, "CrashLoopBackOff")
        assert status["lastState"]["terminated"]["exitCode"] == 1
        message = status["state"]["waiting"]["message"]
        assert message.startswith("back-off 0.2s restarting failed container=main pod=pod-1_")
        ended = await node.pod_in_phase(pod, "Succeeded")
        assert ended["status"]["containerStatuses"][0]["restartCount"] == 2
        assert await node.logs(pod) == "3\n"
        assert await node.logs(pod, previous="true") == "2\n"


async def test_deletion_asks_first_and_kills_later(node: NodeUnderTest) -> None:
    async with node.running():
        kind = await node.run_pod(shell("trap 'exit 0' TERM; sleep 1000 & wait"))
        stubborn = await node.run_pod(shell("trap '' TERM; while :; do sleep 1; done"))
        for pod in (kind, stubborn):
            await node.pod_in_phase(pod, "Running")
        await node.delete(kind)
        await node.delete(stubborn)
        await node.message(kind, "Killing: Stopping container main")


async def test_nothing_of_a_container_outlives_it(node: NodeUnderTest) -> None:
    async with node.running():
        left = node.settings.root / "left"
        script = f"setsid sleep 1000 & echo $! > {left}; exit 0"
        pod = await node.run_pod(shell(script))
        await node.pod_in_phase(pod, "Succeeded")
        assert not Path(f"/proc/{left.read_text().strip()}").exists()


async def test_nothing_outlives_the_kubelet(node: NodeUnderTest) -> None:
    async with node.running():
        left = node.settings.root / "left"
        pod = await node.run_pod(shell(f"echo $$ > {left}; trap '' TERM; sleep 1000"))
        await node.pod_in_phase(pod, "Running")

        async def written() -> bool:
            return left.exists() and bool(left.read_text().strip())

        await until("the container runs", written)
    assert not Path(f"/proc/{left.read_text().strip()}").exists()
    assert not (node.settings.root / "pods").exists()


async def test_signals_are_as_a_program_expects_them(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod(shell("yes | head -n 1; kill -INT $$; echo survived"))
        ended = await node.pod_in_phase(pod, "Failed")
        assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 130
        assert await node.logs(pod) == "y\n"


async def test_a_program_that_is_not_there_is_told(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod({**shell(""), "command": ["nosuch"]})
        status = (await node.pod_in_phase(pod, "Failed"))["status"]["containerStatuses"][0]
        ended = status["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
        assert ended["message"].endswith('exec: "nosuch": executable file not found in $PATH')


async def test_an_unknown_image_without_a_command_is_explained(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod({"name": "main", "image": "nginx:1"})
        status = await node.container_state(pod, "CreateContainerError")
        message = status["state"]["waiting"]["message"]
        assert message.startswith('image "nginx:1" is not one of this simulated node\'s (none)')
        with pytest.raises(Refused, match="is waiting to start: CreateContainerError"):
            await node.logs(pod)
        await node.delete(pod)


async def test_an_image_is_a_folder(node: NodeUnderTest, short_folder: Path) -> None:
    (short_folder / "hello").write_text("#!/bin/sh\necho hello $1 from $PWD as $WHO\n")
    (short_folder / "hello").chmod(0o755)
    image = LocalImage(folder=short_folder, command=("hello",), environment={"WHO": "image"})
    async with node.running(images={"hello:1": image}):
        container = {"name": "main", "image": "hello:1", "args": ["$(NAME)"]}
        field = {"fieldRef": {"fieldPath": "metadata.name"}}
        pod = await node.run_pod({**container, "env": [{"name": "NAME", "valueFrom": field}]})
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod) == f"hello pod-1 from {short_folder} as image\n"


async def test_variables_come_from_config_maps_once_they_are_there(node: NodeUnderTest) -> None:
    reference = {"configMapKeyRef": {"name": "settings", "key": "greeting"}}
    container = shell("echo $GREETING", env=[{"name": "GREETING", "valueFrom": reference}])
    async with node.running():
        pod = await node.run_pod(container)
        status = await node.container_state(pod, "CreateContainerConfigError")
        assert status["state"]["waiting"]["message"] == 'configmap "settings" not found'
        await node.delete(pod)
        body = {"metadata": {"name": "settings"}, "data": {"greeting": "welcome"}}
        await node.client.create(CONFIG_MAPS, body, namespace="default")
        pod = await node.run_pod(container)
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod) == "welcome\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")
async def test_volumes_are_mounted_where_there_are_namespaces(node: NodeUnderTest) -> None:
    body = {"metadata": {"name": "settings"}, "data": {"greeting": "welcome"}}
    await node.client.create(CONFIG_MAPS, body, namespace="default")
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    mounts = [
        {"name": "scratch", "mountPath": "/scratch-of-the-pod"},
        {"name": "settings", "mountPath": "/etc/settings-of-the-pod", "readOnly": True},
    ]
    async with node.running(isolation="namespace"):
        write = shell("echo written > /scratch-of-the-pod/file", name="init", volumeMounts=mounts)
        script = "cat /scratch-of-the-pod/file /etc/settings-of-the-pod/greeting"
        pod = await node.run_pod(
            shell(script, volumeMounts=mounts), initContainers=[write], volumes=volumes
        )
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod, container="main") == "written\nwelcome"
    assert not Path("/scratch-of-the-pod").exists()
    assert not Path("/etc/settings-of-the-pod").exists()


async def test_volumes_are_refused_where_there_are_no_namespaces(node: NodeUnderTest) -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}]
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    async with node.running():
        pod = await node.run_pod(shell("exit 0", volumeMounts=mounts), volumes=volumes)
        told = await node.message(pod, "FailedMount")
        assert "without root the simulated kubelet can't mount anything on /scratch" in told
        await node.delete(pod)


async def test_isolation_that_can_not_be_had_is_refused(
    node: NodeUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InvalidInput, match="needs root"):
        async with node.running(isolation="namespace"):
            pass


async def test_logs_are_followed_until_the_container_ends(node: NodeUnderTest) -> None:
    async with node.running():
        go_on = node.settings.root / "go-on"
        script = f"echo one; until test -e {go_on}; do sleep 0.05; done; echo two"
        pod = await node.run_pod(shell(script))
        await node.pod_in_phase(pod, "Running")
        stream = await node.client.open_stream(
            PODS,
            pod["metadata"]["name"],
            namespace="default",
            subresource="log",
            query={"follow": "true", "timestamps": "true"},
        )
        first = await stream.read()
        go_on.touch()
        rest = b""
        while chunk := await stream.read():
            rest += chunk
        stream.close()
        (stamp, text) = first.split()
        assert text == b"one"
        assert stamp.endswith(b"Z")
        assert rest.endswith(b" two\n")


async def test_a_part_of_a_log_can_be_had(node: NodeUnderTest) -> None:
    async with node.running():
        pod = await node.run_pod(shell("for i in 1 2 3 4; do echo line $i; done"))
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod, tailLines="2") == "line 3\nline 4\n"
        assert await node.logs(pod, limitBytes="9") == "line 1\nli"
        assert await node.logs(pod, sinceSeconds="1000", tailLines="1") == "line 4\n"
        assert await node.logs(pod, sinceTime="2999-01-01T00:00:00Z") == ""
        with pytest.raises(Refused, match="previous terminated container"):
            await node.logs(pod, previous="true")


async def test_the_kubelets_server_is_for_certificates_of_the_cluster(node: NodeUnderTest) -> None:
    async with node.running():
        found = await node.node()
        assert found is not None
        port = found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        authority = node.server.authority
        contexts: Mapping[int, ssl.SSLContext] = {
            401: authority.client_context(),
            200: authority.client_context("somebody", ()),
        }
        for status, context in contexts.items():
            async with aiohttp.ClientSession() as session:
                url = f"https://127.0.0.1:{port}/healthz"
                async with session.get(url, ssl=context) as response:
                    assert response.status == status


async def test_containers_end_with_a_kubelet_that_is_killed(short_folder: Path) -> None:
    left = short_folder / "left"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _DOOMED, str(short_folder)), stderr=asyncio.subprocess.DEVNULL
    )
    try:

        async def written() -> Any:
            return left.exists() and left.read_text().split()[1:]

        pids = [*await until("the container runs", written)]
    finally:
        child.kill()
        await child.wait()

    async def gone() -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in pids)

    await until("the processes are gone", gone)


_DOOMED = """
import asyncio, sys
from pathlib import Path
from tests.component.simulation.kubelets import node_under_test, shell

async def main(folder):
    async with node_under_test(folder) as node, node.running():
        script = f"setsid sleep 1000 & echo pids $$ $! > {folder}/left; sleep 1000"
        await node.run_pod(shell(script))
        await asyncio.sleep(1000)

asyncio.run(main(Path(sys.argv[1])))
"""
