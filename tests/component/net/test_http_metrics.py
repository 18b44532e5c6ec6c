"""The metrics listener, scraped over real sockets."""

import asyncio
from collections.abc import Iterable

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from casaba.errors import HostError, InvalidInput
from casaba.net.http_metrics import MetricsServer, parse_address
from casaba.wire.exposition import Family

LOOPBACK = "127.0.0.1:0"


def families_of(text: str) -> list[Metric]:
    """Of an OpenMetrics text."""
    return list(openmetrics(text))  # type: ignore[no-untyped-call]


class Registry:
    """One registry with a gauge and a counter, and a readiness that tests change."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.not_ready: str | None = None
        Gauge("cards", "Cards.", ["node"], registry=self.registry).labels("edge-1").set(2)
        Counter("prepared", "Claims.", registry=self.registry).inc(3)

    def server(self) -> MetricsServer:
        return MetricsServer(LOOPBACK, self.registry, is_ready=lambda: self.not_ready)


async def _get(
    server: MetricsServer, path: str, headers: dict[str, str] | None = None
) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{server.port}{path}", headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers["Content-Type"]


async def test_prometheus_reads_the_plain_text() -> None:
    async with Registry().server() as server:
        status, text, content_type = await _get(server, "/metrics")
    samples = {
        sample.name: (sample.labels, sample.value)
        for family in prometheus(text)
        for sample in family.samples
    }
    assert status == 200
    assert content_type.startswith("text/plain; version=")
    assert samples["cards"] == ({"node": "edge-1"}, 2)
    assert samples["prepared_total"] == ({}, 3)


async def test_openmetrics_for_who_asks_for_it() -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with Registry().server() as server:
        _, text, content_type = await _get(server, "/metrics", accept)
    assert content_type.startswith("application/openmetrics-text")
    assert {family.name for family in families_of(text)} == {"cards", "prepared"}


async def test_scrapes_are_compressed_for_who_takes_it() -> None:
    async with Registry().server() as server:
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            url = f"http://127.0.0.1:{server.port}/metrics"
            async with session.get(url, headers={"Accept-Encoding": "gzip"}) as answer:
                assert answer.headers["Content-Encoding"] == "gzip"


async def test_readiness_tells_why_not() -> None:
    told = Registry()
    async with told.server() as server:
        assert (await _get(server, "/readyz"))[0] == 200
        told.not_ready = "no certificate"
        status, text, _ = await _get(server, "/readyz")
        assert (status, text) == (503, "not ready: no certificate\n")
        assert (await _get(server, "/healthz"))[0] == 200


async def test_a_collector_that_fails_ends_nothing() -> None:
    class Failing:
        def collect(self) -> Iterable[Metric]:
            raise ValueError("no such card")

    told = Registry()
    async with told.server() as server:
        failing = Failing()
        told.registry._collector_to_names[failing] = []
        status, text, _ = await _get(server, "/metrics")
        assert status == 500
        assert "no such card" in text
        del told.registry._collector_to_names[failing]
        assert (await _get(server, "/metrics"))[0] == 200


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
async def test_families_of_one_scrape_come_after_the_registry_and_one_scrape_at_a_time(
    accept: str,
) -> None:
    told = Registry()
    reads = inside = most = 0

    async def families() -> list[Family]:
        nonlocal reads, inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        reads += 1
        inside -= 1
        samples = [(('a "quoted" \\ name\n',), float(reads))]
        gauge = Family(name="reads", kind="gauge", help="R.", labels=("by",), samples=samples)
        return [gauge, Family(name="done", kind="counter", help="D.", labels=(), samples=[((), 7)])]

    server = MetricsServer(
        LOOPBACK, told.registry, is_ready=lambda: told.not_ready, families=families
    )
    parse = families_of if "openmetrics" in accept else prometheus
    async with server:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_get(server, "/metrics", {"Accept": accept})) for _ in range(5)
            ]
    samples = [
        (sample.name, dict(sample.labels), sample.value)
        for task in tasks
        for family in parse(task.result()[1])
        for sample in family.samples
    ]
    assert sorted(value for name, _, value in samples if name == "reads") == [1, 2, 3, 4, 5]
    assert ("reads", {"by": 'a "quoted" \\ name\n'}, 1) in samples
    assert samples.count(("done_total", {}, 7)) == 5
    assert samples.count(("cards", {"node": "edge-1"}, 2)) == 5
    assert most == 1


async def test_an_address_in_use_is_told() -> None:
    async with Registry().server() as first:
        second = MetricsServer(
            f"127.0.0.1:{first.port}", CollectorRegistry(), is_ready=lambda: None
        )
        with pytest.raises(HostError, match=r"can't serve metrics on 127\.0\.0\.1"):
            async with second:
                pass


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":9394", (None, 9394)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_addresses(address: str, parts: tuple[str | None, int]) -> None:
    assert parse_address(address) == parts


@pytest.mark.parametrize("address", ["", "9394", "::1:80", "host:", "host:65536", "host:-1", "[:1"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="give host:port"):
        parse_address(address)
