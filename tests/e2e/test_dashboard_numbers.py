"""What panels show of known series: each card, slice and claim once, and only what was chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.charts import CHART
from tests.e2e.monitoring import filled
from tests.e2e.rule_tests import Object, Series, check_rules, handed_over, rule_test

ALL = {"node": ".*", "gpu": ".*", "namespace": ".*", "pod": ".*", "__rate_interval": "4m"}
"""Grafana's rate interval where Prometheus scrapes once a minute, as it does here."""
OVERLAP = "30m"
Samples = dict[str, float]
"""Values by labels, or by title."""


def cards(name: str, **values: int) -> Series:
    """A gauge of card A of node a, and of card B of node b."""
    return {
        f'{name}{{node="{card.lower()}",device_uuid="{card}",device_index="0"}}': f"{value}x60"
        for card, value in values.items()
    }


def of_slice(name: str, values: str, *, pod: str = "", claim: str = "k", card: str = "A") -> Series:
    """A series of one slice; without a pod, pods share it."""
    whose = f'pod="{pod}",container="c",' if pod else ""
    labels = f'node="{card.lower()}",namespace="d",{whose}claim="{claim}",request="r",gpu="{card}"'
    return {f"{name}{{{labels}}}": values}


def user(pod: str, claim: str) -> Series:
    labels = f'node="a",namespace="d",pod="{pod}",container="c",claim="{claim}",request="r"'
    return {f"casaba_slice_user{{{labels}}}": "1x60"}


NODES: Series = {
    **cards("hami_gpu_memory_limit_bytes", A=100, B=100),
    **cards("hami_gpu_memory_allocated_bytes", A=50, B=50),
    **cards("hami_gpu_core_limit_ratio", A=100, B=100),
    **cards("hami_gpu_core_allocated_ratio", A=50, B=30),
    **cards("hami_gpu_shared_count", A=2, B=1),
    **cards("casaba_card_free_memory_bytes", A=50, B=50),
    **cards("hami_host_gpu_memory_used_bytes", A=80, B=60),
    **cards("hami_host_gpu_utilization_ratio", A=40, B=20),
    'casaba_claims{state="pending"}': "2x60",
    'casaba_published_devices{node="a"}': "1x60",
    'casaba_published_devices{node="b"}': "1x60",
    'casaba_card_foreign_processes{node="a",gpu="A",device="d"}': "1x60",
    'casaba_unguarded_processes{node="a",namespace="d",pod="p",container="c"}': "3x60",
    **of_slice("casaba_slice_memory_used_bytes", "20x60", pod="p"),
    **of_slice("casaba_slice_memory_limit_bytes", "40x60", pod="p"),
    **of_slice("casaba_slice_processes", "4x60", pod="p"),
    **of_slice("casaba_refusals_total", "7x60", pod="p"),
    **user("p", "k"),
}

NUMBERS: dict[str, Samples] = {
    "cluster": {
        "Cards": 2,
        "Memory": 200,
        "Memory allocated": 0.5,
        "Compute allocated": 0.4,
        "Utilisation now": 30,
        "Claims waiting": 2,
        "Nodes that offer cards": 2,
    },
    "node": {
        "Cards offered": 2,
        "Containers on them": 3,
        "Memory used": 140,
        "Unguarded processes": 3,
        "Foreign processes": 1,
    },
    "card": {
        "Utilisation, mean of 5 minutes": 30,
        "Compute allocated": 40,
        "Memory free to claim": 100,
        "Containers": 3,
    },
    "pod": {"Memory used": 0.5, "Processes": 4, "Refusals, last hour": 0},
}


@pytest.mark.parametrize("series", [NODES, handed_over(NODES, 29, 31)], ids=["one", "two"])
def test_a_number_is_the_same_while_an_agent_or_a_leader_is_replaced(
    tmp_path: Path, series: Series
) -> None:
    asked = [
        shown(series, board, title, {"{}": value})
        for board, titles in NUMBERS.items()
        for title, value in titles.items()
    ]
    check_rules(tmp_path, NO_RULES, asked)


def test_memory_used_is_of_the_cards_whose_agents_answer(tmp_path: Path) -> None:
    cut_off = {
        key: values.replace("x60", "x20 stale") if "_host_" in key and '"b"' in key else values
        for key, values in NODES.items()
    }
    used = {"{}": 0.8}
    asked = shown(cut_off, "cluster", "Allocated and used", used, target="B")
    check_rules(tmp_path, NO_RULES, [asked])


SLICES: Series = {
    **of_slice("casaba_slice_memory_used_bytes", "20x60", pod="p", claim="own"),
    **of_slice("casaba_slice_memory_used_bytes", "30x60", claim="shared"),
    **of_slice("casaba_slice_memory_used_bytes", "50x60", claim="theirs"),
    **of_slice("casaba_gpu_seconds_total", "0+30x60", claim="shared"),
    **of_slice("casaba_gpu_seconds_total", "0+15x60", claim="theirs"),
    **user("p", "own"),
    **user("p", "shared"),
    **user("q", "shared"),
    **user("q", "theirs"),
}
OWN = '{namespace="d",pod="p",container="c",claim="own",request="r",gpu="A"}'
SHARED = '{namespace="d",claim="shared",request="r",gpu="A"}'


def test_a_pod_shows_what_it_shares_with_others(tmp_path: Path) -> None:
    chosen = {"pod": "p"}
    asked = [
        shown(SLICES, "pod", "Memory", {OWN: 20, SHARED: 30}, chosen),
        shown(SLICES, "pod", "Time of the card", {SHARED: 0.5}, chosen),
        shown(SLICES, "pod", "GPU time, last hour", {"{}": 30 * 60}, chosen, at="1h"),
    ]
    check_rules(tmp_path, NO_RULES, asked)


@pytest.mark.parametrize(
    ("board", "title"),
    [
        ("node", "Time used by tenants"),
        ("card", "Time used by each slice"),
        ("pod", "Time of the card"),
    ],
)
def test_nobody_is_seen_to_use_more_time_while_an_agent_is_replaced(
    tmp_path: Path, board: str, title: str
) -> None:
    series = handed_over(SLICES, 29, 31)
    asked = [
        shown(series, board, title, {}, at=f"{minute}m", more_than=0.51) for minute in range(28, 37)
    ]
    check_rules(tmp_path, NO_RULES, asked)


def test_all_cards_are_those_of_the_chosen_node(tmp_path: Path) -> None:
    series = NODES | of_slice("casaba_gpu_seconds_total", "0+6x60", pod="q", card="B")
    chosen = {"node": "b"}
    busy = '{namespace="d",pod="q",container="c",claim="k",request="r",gpu="B"}'
    asked = [
        shown(series, "card", "Compute allocated", {"{}": 30}, chosen),
        shown(series, "card", "Containers", {"{}": 1}, chosen),
        shown(series, "card", "Utilisation", {'{node="b",device_uuid="B"}': 20}, chosen),
        shown(series, "card", "Time used by each slice", {busy: 0.1}, chosen),
    ]
    check_rules(tmp_path, NO_RULES, asked)


NO_RULES: Object = {"groups": []}


def shown(
    series: Series,
    board: str,
    title: str,
    values: Samples,
    chosen: dict[str, str] | None = None,
    *,
    target: str = "A",
    at: str = OVERLAP,
    more_than: float | None = None,
) -> Object:
    """A panel's samples in minute 30 or another, or those of them that are larger."""
    panels = json.loads((CHART / "dashboards" / f"{board}.json").read_text())["panels"]
    (panel,) = (one for one in panels if one["title"] == title)
    (asked,) = (one["expr"] for one in panel["targets"] if one["refId"] == target)
    samples = [{"labels": labels, "value": value} for labels, value in values.items()]
    asked = filled(asked, ALL | (chosen or {}))
    if more_than is not None:
        asked = f"({asked}) > {more_than}"
    told = {"expr": asked, "eval_time": at, "exp_samples": samples}
    return {**rule_test(series, f"{board}: {title}"), "promql_expr_test": [told]}
