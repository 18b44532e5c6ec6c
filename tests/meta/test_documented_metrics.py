"""The page on metrics tells every series with its labels, and no other."""

import ast
import asyncio
import re
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from casaba.model.node_use import NodeUse
from casaba.services.controllers.metrics import ControllerMetrics
from casaba.services.node_agent.metrics import AgentMetrics
from casaba.services.webhook.metrics import WebhookMetrics
from casaba.settings.controllers import AllocationMetricsSettings
from casaba.wire.exposition import Family
from tests.meta.pages import METRICS, SOURCE, chapter, names, tables

Series = dict[str, frozenset[str]]
"""Labels by name, as people ask for it."""


def of_families(families: Iterable[Family]) -> Series:
    return {
        f"{one.name}_total" if one.kind == "counter" else one.name: frozenset(one.labels)
        for one in families
    }


def of_registry(registry: CollectorRegistry) -> Series:
    found: Series = {}
    for collector in registry._collector_to_names:
        assert isinstance(collector, MetricWrapperBase)
        name = f"{collector._name}_total" if collector._type == "counter" else collector._name
        found[name] = frozenset(collector._labelnames)
    return found


NOTHING_USED = NodeUse(
    node="", gpus=(), readings={}, slices=(), guards=(), foreign={}, boot_time_ns=0, pods_told=True
)


def series_of_agent() -> Series:
    async def read() -> NodeUse:
        return NOTHING_USED

    reader: Any = SimpleNamespace(read=read)
    status: Any = SimpleNamespace(problems=(), is_registered=True)
    metrics = AgentMetrics(reader, status, node="", device_count=lambda: 0, legacy=True)
    return of_registry(metrics.registry) | of_families(asyncio.run(metrics.families()))


def series_of_controller(settings: AllocationMetricsSettings) -> Series:
    no_objects = SimpleNamespace(objects={})
    cluster: Any = SimpleNamespace(
        slices=no_objects,
        claims=no_objects,
        pods=no_objects,
        quotas=lambda: (),
        pod=lambda namespace, name: None,
        missing=lambda: None,
    )
    templates: Any = SimpleNamespace(deleted=0, failed=0)
    certificates: Any = SimpleNamespace(expiries={})
    metrics = ControllerMetrics(cluster, templates, certificates, settings, leads=lambda: True)
    return of_families(asyncio.run(metrics.families()))


def series_of_webhook() -> Series:
    registry = CollectorRegistry()
    WebhookMetrics(registry)
    return of_registry(registry)


BOTH_SETS = AllocationMetricsSettings(legacy_dra_names=True, legacy_scheduler_names=True)
NEITHER_SET = AllocationMetricsSettings(legacy_dra_names=False, legacy_scheduler_names=False)


def told_series(*titles: str) -> Series:
    return {
        name: frozenset(filter(None, cells[1].split(", ")))
        for title in titles
        for cells in tables(chapter(METRICS, title), "metric")
        for name in names(cells[0])
    }


def test_every_metric_of_the_webhook_is_documented_and_no_other() -> None:
    assert told_series("Webhook") == series_of_webhook()


def test_every_metric_of_the_agent_is_documented_and_no_other() -> None:
    assert told_series("Node agent: what is used", "vGPUmonitor, old") == series_of_agent()


def test_every_metric_of_the_controller_is_documented_and_no_other() -> None:
    new = "Controller: what is allocated"
    told = told_series(new, "hami-dra-monitor, old", "HAMi's scheduler, old")
    assert told == series_of_controller(BOTH_SETS)
    assert told_series(new) == series_of_controller(NEITHER_SET)


def test_the_schedulers_old_names_of_cards_are_documented() -> None:
    """Those of which hami-dra-monitor has the name too."""
    only_scheduler = replace(BOTH_SETS, legacy_dra_names=False)
    for name, labels in series_of_controller(only_scheduler).items():
        assert f"`{name}`" in METRICS
        assert all(re.search(rf"\b{label}\b", METRICS) for label in labels)


def test_no_metric_of_the_source_is_forgotten() -> None:
    known = {name.removesuffix("_total") for name in names(METRICS)}
    modules = [path for path in SOURCE.rglob("*.py") if "metrics" in str(path.relative_to(SOURCE))]
    constants = {
        node.value
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    like_metrics = {one for one in constants if re.fullmatch(r"(casaba|hami)(_[a-z]+)+", one)}
    assert {one for one in like_metrics if not one.endswith("_families")} <= known
