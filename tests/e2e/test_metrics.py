"""What the chart's agents and controller tell a real Prometheus, and what people see of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.bed import Bed
from tests.cluster.prometheus import Prometheus, prometheus
from tests.cluster.waiting import wait_until
from tests.e2e.alerts import alert_rules, alerts_of
from tests.e2e.charts import CHART, RELEASE, rendered
from tests.e2e.monitoring import (
    MIB,
    NAMESPACE,
    SCRAPED_S,
    busy,
    classic_pod,
    differences,
    firing,
    foreign_process,
    has_series,
    impatient,
    is_full,
    of_hami,
    quota,
    scraped,
    told,
    without_data,
)
from tests.e2e.workloads import (
    SCENARIO_GPU,
    SLICE_TIMEOUT_S,
    applied,
    busy_shares,
    claim,
    container,
    holding,
    pod,
    run_in,
    wait_for_pod,
    wait_for_slice,
)
from tests.hami_metrics import (
    DRA_MONITOR,
    OLD_DRA_MONITOR,
    OLD_VGPU_MONITOR,
    SCHEDULER,
    VGPU_MONITOR,
)

pytestmark = pytest.mark.timeout(300)
PLACED = (f"--namespace={NAMESPACE}", "--create-namespace")
VALUES = ("--set=drivers.nvidia.containerDriver=true", "--set=drivers.nvidia.legacyMetrics=true")
MONITORING = tuple(f"monitoring/{name}.yaml" for name in ("servicemonitors", "dashboards"))
WAITING = ("--wait", "--timeout=180s")
TARGETS = 5
"""Two agents, two webhooks, and the controller that leads."""

MEASURE_S = 8.0
TENANT_MIB, HELD_MIB = 4096, 3072


@pytest.fixture(scope="module")
def chart(bare_bed: Bed) -> Iterator[Bed]:
    """The chart, with HAMi's old names too."""
    bare_bed.helm("install", RELEASE, str(CHART), *PLACED, *VALUES, *WAITING)
    for node in ("edge-1", "edge-2"):
        wait_for_slice(bare_bed, node)
    yield bare_bed
    bare_bed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--no-hooks", *WAITING)


@pytest.fixture(scope="module")
def shown() -> dict[str, list[dict[str, Any]]]:
    """What the chart brings for monitoring, by kind; the cluster has no Prometheus Operator."""
    on = {part: {"enabled": True} for part in ("serviceMonitor", "dashboards")}
    kinds: dict[str, list[dict[str, Any]]] = {}
    for object_ in rendered(NAMESPACE, *MONITORING, values={"monitor": on}):
        kinds.setdefault(object_["kind"], []).append(object_)
    return kinds


@pytest.fixture(scope="module")
def rules() -> dict[str, Any]:
    """The alerts as a rule file."""
    return alert_rules()


@pytest.fixture(scope="module")
def server(
    chart: Bed, shown: dict[str, list[dict[str, Any]]], rules: dict[str, Any]
) -> Iterator[Prometheus]:
    """Prometheus with the chart's ServiceMonitors, and its alerts without their patience."""
    with prometheus(chart, shown["ServiceMonitor"], impatient(rules)) as running:
        wait_until(
            "all targets are scraped",
            lambda: sorted(health for health, _ in running.targets().values()) == ["up"] * TARGETS,
            SCRAPED_S,
            explain=lambda: str(running.targets()),
        )
        yield running


def test_a_tenants_series_while_it_waits_allocates_is_refused_works_and_is_gone(
    chart: Bed, server: Prometheus
) -> None:
    one = f"{{{WHO}}}"
    with applied(chart, classic_pod("passing", "c", gpumem=str(TENANT_MIB), gpucores="50")):
        wait_for_pod(chart, "passing")
        told(server, f"casaba_slice_memory_limit_bytes{one}", TENANT_MIB * MIB)
        told(server, f"hami_vgpu_memory_limit_bytes{one}", TENANT_MIB * MIB)
        told(server, f"hami_vgpu_memory_allocated_bytes{one}", TENANT_MIB * MIB)
        told(server, f"hami_vgpu_core_allocated_ratio{one}", 50)
        told(server, f"hami_dra_vgpu_core_allocated_ratio{one}", 0.5)
        for name in ("hami_vgpu_memory_used_bytes", "hami_container_device_utilization_ratio"):
            told(server, name + one, 0)
        told(server, f"casaba_refusals_total{one}", 0)
        with holding(chart, "passing", HELD_MIB, "c"):
            told(server, f"casaba_slice_memory_used_bytes{one}", HELD_MIB * MIB)
            told(server, f"hami_vgpu_memory_used_bytes{one}", HELD_MIB * MIB)
            told(server, f'casaba_slice_memory_kind_bytes{{kind="device",{WHO}}}', HELD_MIB * MIB)
            told(server, f"casaba_refusals_total{one}", 1)
            told(server, f"casaba_guard_alive{one}", 1)
            assert server.value(HOST_MEMORY) >= HELD_MIB * MIB
        told(server, f"casaba_slice_memory_used_bytes{one}", 0)
        told(server, f"casaba_guard_alive{one}", None)
        check_time(chart, server, one)
    told(server, f'count({{__name__!~"ALERTS.*",{WHO}}})', None)
    told(server, 'count({__name__=~".+",podname="passing"})', None)
    told(server, f'hami_gpu_shared_count{{device_uuid="{SCENARIO_GPU}"}}', 0)


WHO = 'namespace="default",pod="passing"'
HOST_MEMORY = f'hami_host_gpu_memory_used_bytes{{device_uuid="{SCENARIO_GPU}"}}'


def check_time(bed: Bed, server: Prometheus, one: str) -> None:
    """The time that is told of a busy pod with half of the card is what the card itself says."""
    with busy(bed, "passing"):
        wait_until(
            "its time is told",
            lambda: server.value(f"casaba_slice_utilization_ratio{one}") > 0,
            SCRAPED_S,
        )
        before = server.value(f"casaba_gpu_seconds_total{one}")
        share = busy_shares(bed, "edge-1", ["passing"], MEASURE_S)["passing"]
        wait_until(
            "as much time is told as the card gave",
            lambda: (
                server.value(f"casaba_gpu_seconds_total{one}") - before
                >= share / 100 * MEASURE_S * 0.9
            ),
            SCRAPED_S,
        )
        utilization = server.value(f"hami_container_device_utilization_ratio{one}")
        assert abs(utilization - share) <= 10
        own = server.value(f"casaba_slice_utilization_ratio{one}")
        assert abs(own * 50 - utilization) <= 10
        card = f'hami_host_gpu_utilization_ratio{{device_uuid="{SCENARIO_GPU}"}}'
        assert server.value(f"avg_over_time({card}[{MEASURE_S:.0f}s])") > 0


def test_what_containers_share_has_no_container_not_even_the_agents(
    chart: Bed, server: Prometheus
) -> None:
    """An empty label keeps Prometheus from putting the target's own in its place."""
    containers = [container("one", "pair"), container("two", "pair")]
    with applied(chart, claim("pair", ("gpu", "1Gi", 5)), pod("pair", ["pair"], containers)):
        wait_for_pod(chart, "pair")
        told(server, 'casaba_slice_memory_limit_bytes{namespace="default",pod="pair"}', 1 << 30)
        told(server, 'count(casaba_slice_user{namespace="default",pod="pair"})', 2)
        ((labels, _),) = server.query('casaba_slice_memory_limit_bytes{claim="pair"}')
        assert "container" not in labels
        assert labels["node"] == "edge-1"


@pytest.fixture(scope="module")
def at_work(chart: Bed, server: Prometheus) -> Iterator[None]:
    """A tenant of the first node that holds memory, was refused more, and is busy."""
    assert server
    with contextlib.ExitStack() as ending:
        ending.enter_context(quota(chart))
        working = classic_pod("at-work", "c", gpumem=str(TENANT_MIB), gpucores="50")
        ending.enter_context(applied(chart, working))
        wait_for_pod(chart, "at-work")
        ending.enter_context(holding(chart, "at-work", HELD_MIB, "c"))
        ending.enter_context(busy(chart, "at-work"))
        yield


@pytest.fixture(scope="module")
def in_trouble(chart: Bed, at_work: None) -> Iterator[None]:
    """The second node loses its driver under a pod, a tenant spoils its accounting, a process of
    the first node uses the card past all slices, a pod waits for more than there is, and a claim
    for its pod."""
    with contextlib.ExitStack() as ending:
        ahead = claim("ahead", ("gpu", "1Gi", 5))
        waiting = claim("waiting", ("gpu", "200Gi", 5))
        pods = (
            pod("waiting", ["waiting"], [container("c", "waiting")]),
            classic_pod("spoiler", "c", gpumem="256", gpucores="5"),
            classic_pod("stranded", "c", node="edge-2", gpumem="256", gpucores="5"),
        )
        ending.enter_context(applied(chart, ahead, waiting, *pods))
        for name in ("spoiler", "stranded"):
            wait_for_pod(chart, name)
        spoil = "for region in /run/casaba/claims/*/*/region; do echo spoilt > $region; done"
        run_in(chart, "spoiler", "sh", "-c", spoil)
        ending.enter_context(foreign_process(chart))
        ending.callback(wait_for_slice, chart, "edge-2")
        ending.callback(chart.node("edge-2").bring_driver)
        chart.node("edge-2").remove_driver()
        yield


def test_both_name_sets_of_hami_label_by_label(chart: Bed, at_work: None) -> None:
    agents = VGPU_MONITOR | OLD_VGPU_MONITOR
    wait_until(
        "an agent tells HAMi's names",
        lambda: agents in map(of_hami, scraped(chart, "node-agent", 9394)),
        SCRAPED_S,
        explain=lambda: differences(agents, scraped(chart, "node-agent", 9394)),
    )
    controller = SCHEDULER | DRA_MONITOR | OLD_DRA_MONITOR
    wait_until(
        "the leading controller tells HAMi's names",
        lambda: controller in map(of_hami, scraped(chart, "controller", 8080)),
        SCRAPED_S,
        explain=lambda: differences(controller, scraped(chart, "controller", 8080)),
    )


def test_each_panel_of_each_dashboard_has_data(
    server: Prometheus, shown: dict[str, list[dict[str, Any]]], in_trouble: None
) -> None:
    pages = [json.loads(text) for one in shown["ConfigMap"] for text in one["data"].values()]
    assert len(pages) == 4
    for page in pages:
        wait_until(
            f"each panel of {page['title']!r} has data",
            partial(is_full, server, page),
            SCRAPED_S,
            explain=partial(without_data, server, page),
        )


PROVOKED = {
    "CasabaAccountingDamaged",
    "CasabaAgentProblem",
    "CasabaClaimsPending",
    "CasabaForeignProcess",
    "CasabaLostShares",
    "CasabaMemoryRefused",
    "CasabaNodeOffersNothing",
}
"""Alerts that `in_trouble` makes fire."""


def test_alerts_fire_in_trouble_and_say_whom_they_concern(
    server: Prometheus, in_trouble: None
) -> None:
    wait_until(
        "the alerts fire",
        lambda: {one["labels"]["alertname"] for one in firing(server)} >= PROVOKED,
        SLICE_TIMEOUT_S,
        explain=lambda: str(firing(server)),
    )
    assert server.rule_errors() == {}
    told(server, 'max(casaba_claims{state="unused"})', 1)
    for alert in firing(server):
        for text in alert["annotations"].values():
            assert "<no value>" not in text, alert
            assert "  " not in text, alert


def test_each_alert_watches_series_that_are_there(
    server: Prometheus, rules: dict[str, Any], in_trouble: None
) -> None:
    for alert in alerts_of(rules):
        for selector in server.selectors(alert["expr"]):
            wait_until(
                f"{alert['alert']} sees {selector}",
                partial(has_series, server, selector),
                SCRAPED_S,
            )
