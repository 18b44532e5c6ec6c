"""Dashboards and alerts speak of series that there are, in the form of Grafana and Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, rendered

DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
ALERTS, OF_CONTROLLER = (CHART / "rules" / f"{name}.yaml" for name in ("alerts", "controller"))
SOURCES = Path(__file__).parents[2] / "src" / "casaba"
_OF_A_COUNTER = re.compile(r"_total$")
_OF_A_HISTOGRAM = re.compile(r"_(bucket|count|sum)$")
_SERIES = re.compile(r"\b(?:hami|casaba)_[a-z0-9_]+")

Object = dict[str, Any]


def written(*folders: str) -> set[str]:
    """Names of series in the programs, as far as they stand there whole or by their verb."""
    text = "".join(
        path.read_text()
        for folder in folders or ("",)
        for path in (SOURCES / folder).rglob("*.py")
        if "simulation" not in path.parts
    )
    names = set(re.findall(r'"((?:hami|casaba)_[a-z0-9_]+)"', text))
    patterns = re.findall(r'f"(casaba_\{verb\}_[a-z]+)"', text)
    return names | {p.format(verb=verb) for p in patterns for verb in ("prepare", "unprepare")}


def is_written(series: str, names: set[str]) -> bool:
    bare = _OF_A_HISTOGRAM.sub("", _OF_A_COUNTER.sub("", series))
    return series in names or bare in names


def rules() -> Iterator[Object]:
    for group in (*groups(ALERTS), *groups(OF_CONTROLLER)):
        yield from group["rules"]


def groups(path: Path) -> list[Object]:
    found: list[Object] = yaml.safe_load(path.read_text())["groups"]
    return found


def panels(path: Path) -> list[Object]:
    found: list[Object] = json.loads(path.read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]
    for rule in rules():
        yield rule["alert"], rule["expr"]


def test_there_are_all_four() -> None:
    assert [path.stem for path in DASHBOARDS] == ["card", "cluster", "node", "pod"]


def test_every_series_is_one_of_ours() -> None:
    names = written()
    unknown = [
        (where, series)
        for where, expression in expressions()
        for series in _SERIES.findall(expression)
        if not is_written(series, names)
    ]
    assert unknown == []


def test_counters_are_read_as_rates_and_brackets_close() -> None:
    for where, expression in expressions():
        for series in _SERIES.findall(expression):
            if _OF_A_COUNTER.search(series):
                assert re.search(r"\b(rate|increase)\(", expression), where
        for left, right in ("()", "[]", "{}"):
            assert expression.count(left) == expression.count(right), where


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_whole(path: Path) -> None:
    board = json.loads(path.read_text())
    assert board["uid"] == f"casaba-{path.stem}"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(board))) <= variables
    for panel in board["panels"]:
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_do_not_overlap(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(path):
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_a_dashboard_shows_ratios_by_their_own_scale() -> None:
    """Of HAMi's names some end at 1 and some at 100; a panel must know which."""
    of_100 = {
        "hami_host_gpu_utilization_ratio",
        "hami_host_gpu_memory_controller_utilization_ratio",
        "hami_gpu_core_allocated_ratio",
    }
    of_1 = {"casaba_slice_utilization_ratio", "casaba_card_fragmentation_ratio"}
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                unit = panel["fieldConfig"]["defaults"]["unit"]
                shown = set(_SERIES.findall(target["expr"]))
                if shown & of_100 and not re.search(r"/ (100|sum)", target["expr"]):
                    assert unit == "percent", panel["title"]
                if shown & of_1:
                    assert unit == "percentunit", panel["title"]


def test_a_panel_shows_a_gauge_once_whoever_tells_it() -> None:
    """Two agents or two leaders tell the same for a moment while one is replaced."""
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                told = re.sub(r"and on \([a-z_, ]+\) \w+(\{[^}]*\})?", "", target["expr"])
                for before in re.split(r"\b(?:hami|casaba)_\w+", told)[:-1]:
                    once = re.search(r"(max( by \([a-z_, ]+\))?|min|rate|increase) ?\($", before)
                    assert once or before.endswith("avg_over_time("), (path.stem, panel["title"])


def test_a_graph_of_rates_has_samples_whatever_the_scrape_interval() -> None:
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                for window in re.findall(r"\[([^\]]+)\]", target["expr"]):
                    assert window in ("$__rate_interval", "5m", "1h"), (path.stem, panel["title"])


def test_an_alert_says_what_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert rule["alert"].startswith("Casaba")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert len(rule["annotations"]["summary"]) < 120
        used = set(re.findall(r"\$labels\.([a-z_]+)", json.dumps(rule["annotations"])))
        grouped = re.search(r"\b(?:sum|min|max) by \(([a-z_, ]+)\)", rule["expr"])
        assert used <= {name.strip() for name in (grouped[1] if grouped else "").split(",")}


def test_an_alert_is_not_of_one_target() -> None:
    """Its labels stay when a pod of ours is replaced, and a single event does not hold on."""
    for rule in rules():
        gathered = re.match(r"(\(\s*)?(sum|min|max|absent|histogram_quantile)\b", rule["expr"])
        assert gathered, rule["alert"]
        window = re.search(r"\bincrease\(.*\[(\d+)m\]", rule["expr"])
        if window and "for" in rule:
            assert int(window[1]) < int(rule["for"].removesuffix("m")), rule["alert"]


def test_the_agents_job_is_the_one_that_prometheus_knows() -> None:
    """The Prometheus Operator calls a job by its Service."""
    (rule,) = (one for one in rules() if one["alert"] == "CasabaAgentGone")
    (job,) = re.findall(r'up\{job="([^"]+)"', rule["expr"])
    assert rendered().has("Service", job)


def test_nothing_is_told_of_a_controller_that_nobody_scrapes() -> None:
    monitoring = ("monitor.prometheusRule.enabled=true", "monitor.serviceMonitor.enabled=true")
    chart = rendered("monitor.enabled=false", *monitoring)
    assert not chart.has("ServiceMonitor", "casaba-controller")
    groups = chart.one("PrometheusRule", "casaba")["spec"]["groups"]
    told = {rule["alert"] for group in groups for rule in group["rules"]}
    its_own = written("services/controllers", "policy/allocation_metrics")
    for rule in rules():
        is_of_it = all(is_written(series, its_own) for series in _SERIES.findall(rule["expr"]))
        assert is_of_it == (rule["alert"] not in told), rule["alert"]
    assert "absent(" not in json.dumps(groups)


def test_the_chart_passes_them_on_word_for_word() -> None:
    chart = rendered("monitor.prometheusRule.enabled=true", "monitor.dashboards.enabled=true")
    told = chart.one("PrometheusRule", "casaba")["spec"]
    assert told == {"groups": [*groups(ALERTS), *groups(OF_CONTROLLER)]}
    for path in DASHBOARDS:
        config = chart.one("ConfigMap", f"casaba-dashboard-{path.stem}")
        assert config["data"] == {path.name: path.read_text()}
