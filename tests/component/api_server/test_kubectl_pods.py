"""kubectl describe and logs: pods, nodes, claims, with events and a kubelet to ask."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door
from tests.component.api_server.kubectl import Kubectl, kubectl_of

NODE = "edge-1"
PODS = "/api/v1/namespaces/default/pods"
LOG = "working set: 512 MiB\nbatch 1: 311.6 samples/s\n"


@pytest.fixture
def kubectl(server: SimulatedApiServer, tmp_path: Path) -> Kubectl:
    """The administrator's."""
    return kubectl_of(server, tmp_path)


@pytest.fixture
async def kubelet_port(server: SimulatedApiServer) -> AsyncIterator[int]:
    """A kubelet that knows one log."""

    async def logs(request: web.Request) -> web.Response:
        if request.match_info["container"] != "main":
            return web.Response(status=404, text="no such container")
        tail = int(request.query.get("tailLines", "100"))
        return web.Response(text="".join(LOG.splitlines(keepends=True)[-tail:]))

    app = web.Application()
    app.router.add_get("/containerLogs/default/one/{container}", logs)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(
        runner,
        "127.0.0.1",
        0,
        ssl_context=server.authority.server_context(["127.0.0.1", NODE]),
    )
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _node(door: Door, port: int) -> None:
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Linux"},
    }
    await door.create("/api/v1/nodes", NODE)
    patch = {"status": status}
    reply = await door.ask(
        "PATCH",
        f"/api/v1/nodes/{NODE}/status",
        patch,
        content_type="application/merge-patch+json",
    )
    assert reply.code == 200, reply.text


async def _pod(door: Door, *containers: str, node: str = NODE) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": name, "image": "registry.example/a:1"} for name in containers]
    }
    created: dict[str, Any] = await door.create(PODS, "one", spec={**spec, "nodeName": node})
    return created


async def _event(door: Door, object_: dict[str, Any], reason: str, message: str) -> None:
    metadata = object_["metadata"]
    involved = {
        "apiVersion": object_["apiVersion"],
        "kind": object_["kind"],
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "uid": metadata["uid"],
    }
    await door.create(
        "/api/v1/namespaces/default/events",
        f"{metadata['name']}.1",
        involvedObject=involved,
        reason=reason,
        message=message,
        type="Warning",
        source={"component": "tester"},
        firstTimestamp="2020-01-01T00:00:00Z",
        lastTimestamp="2020-01-01T00:00:00Z",
        count=2,
    )


async def test_logs_come_from_the_kubelet(kubectl: Kubectl, door: Door, kubelet_port: int) -> None:
    await _node(door, kubelet_port)
    await _pod(door, "main")
    assert await kubectl.ok("logs", "one") == LOG.strip()
    assert await kubectl.ok("logs", "one", "--tail=1") == LOG.splitlines()[1]


async def test_a_container_must_be_chosen(kubectl: Kubectl, door: Door, kubelet_port: int) -> None:
    await _node(door, kubelet_port)
    await _pod(door, "main", "second")
    said = await kubectl("logs", "one")
    assert said.out == LOG
    assert 'Defaulted container "main" out of: main, second' in said.err
    message = await kubectl.refused("logs", "one", "-c", "third")
    assert "container third is not valid for pod one" in message


async def test_logs_of_a_dead_kubelet_cannot_be_read(kubectl: Kubectl, door: Door) -> None:
    await _node(door, 1)
    await _pod(door, "main")
    message = await kubectl.refused("logs", "one")
    assert "https://127.0.0.1:1/containerLogs/default/one/main" in message
    assert "connection refused" in message


async def test_a_pod_is_described_with_its_events(kubectl: Kubectl, door: Door) -> None:
    await _node(door, 1)
    await _event(door, await _pod(door, "main"), "FailedScheduling", "0/1 nodes are available")
    told = await kubectl.ok("describe", "pod", "one")
    assert "Node:             edge-1/" in told
    assert "0/1 nodes are available" in told
    assert "(x2 over" in told


async def test_a_node_is_described_with_its_pods(kubectl: Kubectl, door: Door) -> None:
    await _node(door, 1)
    await _pod(door, "main")
    told = await kubectl.ok("describe", "node", NODE)
    assert "KubeletReady" in told
    assert "Non-terminated Pods:          (1 in total)" in told
    rows = (await kubectl("get", "nodes", "-o", "wide")).table
    assert rows[1][:3] == [NODE, "Ready", "<none>"]
    assert "127.0.0.1" in rows[1]


async def test_a_claim_is_described_with_its_events(kubectl: Kubectl, door: Door) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = await door.create(path, "half", spec={"devices": {"requests": [request]}})
    await _event(door, claim, "FailedAllocation", "no card has room")
    told = await kubectl.ok("describe", "resourceclaim", "half")
    assert "Device Class Name:  gpu" in told
    assert "no card has room" in told
    assert [row[3] for row in (await kubectl("get", "events")).table[1:]] == ["resourceclaim/half"]
