"""What the chart's agents and controller tell a real Prometheus, and what people see of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from casaba.node.guard_library import native_dir
from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE
from tests.cluster.mounts import DRIVER_ROOT
from tests.cluster.prometheus import Prometheus, prometheus
from tests.cluster.waiting import wait_until
from tests.e2e.alerts import alert_rules, alerts_of
from tests.e2e.charts import CHART, RELEASE, rendered
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
    Names,
)

pytestmark = pytest.mark.timeout(300)

NAMESPACE = "hami-system"
PLACED = (f"--namespace={NAMESPACE}", "--create-namespace")
VALUES = ("--set=drivers.nvidia.containerDriver=true", "--set=drivers.nvidia.legacyMetrics=true")
MONITORING = tuple(f"monitoring/{name}.yaml" for name in ("servicemonitors", "dashboards"))
WAITING = ("--wait", "--timeout=180s")
TARGETS = 5
"""Two agents, two webhooks, and the controller that leads."""

SCRAPED_S = 30.0
MEASURE_S = 8.0
MIB = 1 << 20
TENANT_MIB, HELD_MIB = 4096, 3072
FOREIGN_MIB = 11000
"""More than half of what is left of the card."""

PERIODS = {"__rate_interval": "1m", "__interval": "1m", "__range": "1h"}
"""Grafana's own variables."""


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


def impatient(rules: dict[str, Any]) -> dict[str, Any]:
    """The same alerts; they fire at once."""
    groups = [
        {**group, "rules": [{**rule, "for": "0s"} for rule in group["rules"]]}
        for group in rules["groups"]
    ]
    return {"groups": groups}


def classic_pod(
    name: str, *containers: str, node: str = "edge-1", **resources: str
) -> dict[str, Any]:
    """A pod of one node that waits."""
    limits = {f"nvidia.com/{kind}": amount for kind, amount in ({"gpu": "1"} | resources).items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": container,
                    "image": SAMPLE,
                    "command": ["sleep", "1000000"],
                    "resources": {"limits": limits},
                }
                for container in containers
            ],
        },
    }


@contextlib.contextmanager
def busy(bed: Bed, name: str) -> Iterator[None]:
    """A process in a pod that uses all the time it gets."""
    start = "busy --kernels=1ms --seconds=1000000 >/dev/null 2>&1 & echo $!"
    pid = run_in(bed, name, "sh", "-c", start).split()[-1]
    try:
        yield
    finally:
        run_in(bed, name, "kill", "-9", pid)


def told(server: Prometheus, expression: str, wanted: float | None) -> None:
    """Until an expression has one value; None: until it has none."""
    values = [] if wanted is None else [wanted]
    wait_until(
        f"{expression} is {wanted}",
        lambda: [value for _, value in server.query(expression)] == values,
        SCRAPED_S,
        explain=lambda: str(server.query(expression)),
    )


def scraped(bed: Bed, component: str, port: int) -> list[Names]:
    """Labels by name of each pod of a component, as it tells them."""
    selector = f"--selector=app.kubernetes.io/component={component}"
    listed = bed.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "-o", "name").stdout
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{{}}:{port}/proxy/metrics"
    texts = [
        bed.kubectl("get", "--raw", path.format(name.removeprefix("pod/"))).stdout
        for name in listed.split()
    ]
    return [
        {
            sample.name: frozenset(sample.labels)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        for text in texts
    ]


def of_hami(names: Names) -> Names:
    return {name: labels for name, labels in names.items() if not name.startswith(OURS)}


OURS = ("casaba_", "python_", "process_")


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


@contextlib.contextmanager
def quota(bed: Bed) -> Iterator[None]:
    """A quota on classic resources; it holds nobody back."""
    limited = {"hard": {"requests.nvidia.com/gpu": "8"}}
    object_ = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": limited}
    stdin = json.dumps(object_ | {"metadata": {"name": "cards"}})
    bed.kubectl("apply", "-f", "-", stdin=stdin)
    try:
        yield
    finally:
        bed.kubectl("delete", "resourcequota", "cards")


@pytest.fixture(scope="module")
def in_trouble(chart: Bed, at_work: None) -> Iterator[None]:
    """The second node loses its driver under a pod, a tenant spoils its accounting, a process of
    the first node uses the card past all slices, and a claim waits."""
    with contextlib.ExitStack() as ending:
        waiting = claim("waiting", ("gpu", "1Gi", 5))
        pods = (
            classic_pod("spoiler", "c", gpumem="256", gpucores="5"),
            classic_pod("stranded", "c", node="edge-2", gpumem="256", gpucores="5"),
        )
        ending.enter_context(applied(chart, waiting, *pods))
        for name in ("spoiler", "stranded"):
            wait_for_pod(chart, name)
        spoil = "for region in /run/casaba/claims/*/*/region; do echo spoilt > $region; done"
        run_in(chart, "spoiler", "sh", "-c", spoil)
        ending.enter_context(foreign_process(chart))
        ending.callback(wait_for_slice, chart, "edge-2")
        ending.callback(chart.node("edge-2").bring_driver)
        chart.node("edge-2").remove_driver()
        yield


@contextlib.contextmanager
def foreign_process(bed: Bed) -> Iterator[None]:
    """A process of the first node itself, which no claim has let onto the card."""
    library = f"LD_LIBRARY_PATH={DRIVER_ROOT}/usr/lib/{platform.machine()}-linux-gnu"
    program = native_dir() / "samples/alloc_until_refused"
    with tempfile.TemporaryDirectory() as folder:
        silence = Path(folder) / "silence"
        os.mkfifo(silence)  # an input that never ends
        hold = f"{library} {program} --chunk-mib={FOREIGN_MIB} --hold 0<>{silence} >/dev/null 2>&1"
        said = bed.node("edge-1").run_in_namespaces(["/bin/sh", "-c", f"{hold} & echo $!"]).stdout
        try:
            yield
        finally:
            os.kill(int(said), signal.SIGKILL)


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


def differences(wanted: Names, found: list[Names]) -> str:
    """What is in one of them only."""
    return str([set(wanted.items()) ^ set(of_hami(names).items()) for names in found])


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


def is_full(server: Prometheus, page: dict[str, Any]) -> bool:
    return not without_data(server, page)


def without_data(server: Prometheus, page: dict[str, Any]) -> str:
    """Expressions of panels that have no sample, with all values of all variables chosen."""
    chosen = variables(server, page)
    asked = [
        (panel["title"], filled(target["expr"], chosen))
        for panel in page["panels"]
        for target in panel.get("targets", ())
    ]
    return "\n".join(f"{title}: {text}" for title, text in asked if not server.query(text))


def variables(server: Prometheus, page: dict[str, Any]) -> dict[str, str]:
    """Each variable of a dashboard as a pattern of all its values."""
    chosen = dict(PERIODS)
    for variable in page["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert found, variable
            asked = f"count by ({found[2]}) ({filled(found[1], chosen)})"
            values = [labels[found[2]] for labels, _ in server.query(asked) if labels]
            chosen[variable["name"]] = "|".join(map(re.escape, values)) or "nothing"
    return chosen


def filled(expression: str, chosen: dict[str, str]) -> str:
    """An expression with its variables filled in, as Grafana does."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]].replace("\\", r"\\"), expression)


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
    for alert in firing(server):
        for text in alert["annotations"].values():
            assert "<no value>" not in text, alert
            assert "  " not in text, alert


def firing(server: Prometheus) -> list[dict[str, Any]]:
    return [one for one in server.alerts() if one["state"] == "firing"]


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


def has_series(server: Prometheus, selector: str) -> bool:
    return bool(server.query(selector))
