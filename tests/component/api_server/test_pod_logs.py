"""Logs come from the pod's kubelet, here a small HTTPS server of the same cluster."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from casaba.simulation.api_server.pod_logs import KUBELET_CLIENT
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door

PODS = "/api/v1/namespaces/default/pods"


class Kubelet:
    """Tells who asks for what."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, dict[str, str], str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        certificate = request.transport.get_extra_info("peercert")
        names = dict(pair for part in certificate["subject"] for pair in part)
        self.asked.append((request.path, dict(request.query), names["commonName"]))
        if request.query.get("previous"):
            return web.Response(status=400, text="previous terminated container not found")
        if request.query.get("follow"):
            return await self._break_off(request)
        return web.Response(text="one\ntwo\n")

    async def _break_off(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        assert request.transport
        request.transport.close()
        return response


@pytest.fixture
async def kubelet(server: SimulatedApiServer) -> AsyncIterator[Kubelet]:
    kubelet = Kubelet()
    application = web.Application()
    application.router.add_get("/containerLogs/{rest:.*}", kubelet.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    context = server.authority.server_context(["127.0.0.1"])
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    kubelet.port = runner.addresses[0][1]
    yield kubelet
    await runner.cleanup()


async def make_pod(door: Door, node: str | None, *containers: str) -> None:
    """A pod `a` with these containers, and an account that it can have."""
    await door.create("/api/v1/namespaces/default/serviceaccounts", "default")
    named = [{"name": name, "image": "i"} for name in containers]
    spec: dict[str, Any] = {"containers": named}
    if node:
        spec["nodeName"] = node
    await door.create(PODS, "a", spec=spec)


async def make_node(door: Door, port: int) -> None:
    """A node `n` whose kubelet is at a port of this machine."""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    await door.create("/api/v1/nodes", "n", status=status)


async def test_logs_are_passed_through(door: Door, kubelet: Kubelet) -> None:
    await make_node(door, kubelet.port)
    await make_pod(door, "n", "c")
    logs = await door.ask("GET", f"{PODS}/a/log?tailLines=5&timestamps=true&pretty=true")
    assert (logs.code, logs.text) == (200, "one\ntwo\n")
    assert logs.headers["Content-Type"] == "text/plain"
    query = {"tailLines": "5", "timestamps": "true"}
    assert kubelet.asked == [("/containerLogs/default/a/c", query, KUBELET_CLIENT)]


async def test_a_log_that_the_kubelet_breaks_off_is_no_whole_one(
    door: Door, kubelet: Kubelet
) -> None:
    await make_node(door, kubelet.port)
    await make_pod(door, "n", "c")
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await door.ask("GET", f"{PODS}/a/log?follow=true")


async def test_one_of_several_containers_must_be_named(door: Door, kubelet: Kubelet) -> None:
    await make_node(door, kubelet.port)
    await make_pod(door, "n", "c", "d")
    unnamed = await door.ask("GET", f"{PODS}/a/log")
    assert unnamed.json["message"] == (
        "a container name must be specified for pod a, choose one of: [c d]"
    )
    wrong = await door.ask("GET", f"{PODS}/a/log?container=x")
    assert wrong.json["message"] == "container x is not valid for pod a"
    assert (await door.ask("GET", f"{PODS}/a/log?container=d")).text == "one\ntwo\n"


async def test_a_pod_without_a_node_has_no_log_yet(door: Door) -> None:
    await make_pod(door, None, "c")
    assert (await door.ask("GET", f"{PODS}/a/log")).code == 204


async def test_what_the_kubelet_refuses_is_told(door: Door, kubelet: Kubelet) -> None:
    await make_node(door, kubelet.port)
    await make_pod(door, "n", "c")
    refused = await door.ask("GET", f"{PODS}/a/log?previous=true")
    assert (refused.code, refused.json["message"]) == (
        400,
        "previous terminated container not found",
    )


async def test_a_kubelet_that_is_away_is_named(door: Door) -> None:
    await make_node(door, 9)
    await make_pod(door, "n", "c")
    refused = await door.ask("GET", f"{PODS}/a/log")
    assert refused.code == 500
    assert "https://127.0.0.1:9/containerLogs/default/a/c" in refused.json["message"]


@pytest.mark.parametrize("query", ["tailLines=-1", "limitBytes=0", "sinceSeconds=0"])
async def test_numbers_that_make_no_sense_are_refused(door: Door, query: str) -> None:
    await make_pod(door, None, "c")
    refused = await door.ask("GET", f"{PODS}/a/log?{query}")
    assert (refused.code, refused.json["details"]["kind"]) == (422, "PodLogOptions")
