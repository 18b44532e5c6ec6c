"""Who else gives out the cards, as a Node object tells."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.conflicts import (
    HANDSHAKE,
    REGISTER,
    ConflictRules,
    ConflictVerdict,
    Heartbeat,
    find_conflicts,
)

RULES = ConflictRules(resources=("nvidia.com/gpu", "nvidia.com/mig-*"), silence_s=300.0)
UTC_NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
CARDS = '[{"id":"GPU-1","count":10}]'


def judged(
    node: dict[str, Any], before: Heartbeat | None = None, now_s: float = 1000.0
) -> ConflictVerdict:
    return find_conflicts(node, before, RULES, now_s=now_s, utc=UTC_NOW)


def reasons(node: dict[str, Any]) -> list[str]:
    return [conflict.reason for conflict in judged(node).conflicts]


def node_of(
    capacity: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    **annotations: str,
) -> dict[str, Any]:
    named = {"register": REGISTER, "handshake": HANDSHAKE}
    return {
        "metadata": {
            "name": "edge-1",
            "annotations": {named[key]: value for key, value in annotations.items()},
        },
        "status": {"capacity": capacity or {}, "allocatable": allocatable or {}},
    }


@pytest.mark.parametrize(
    ("capacity", "allocatable", "found"),
    [
        ({}, {}, False),
        ({"cpu": "4"}, {"cpu": "4"}, False),
        ({"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": "0"}, False),
        ({"nvidia.com/gpu": "10"}, {"nvidia.com/gpu": "10"}, True),
        ({"nvidia.com/gpu": "10"}, {"nvidia.com/gpu": "0"}, True),  # its plugin has just gone
        ({"nvidia.com/mig-1g.5gb": "7"}, {}, True),
        ({"nvidia.com/gpumem": "100"}, {}, False),
        ({"nvidia.com/gpu": "many"}, {}, False),
    ],
)
def test_a_device_plugin_shows_in_what_the_kubelet_has(
    capacity: dict[str, str], allocatable: dict[str, str], found: bool
) -> None:
    wanted = ["DevicePluginOffersCards"] if found else []
    assert reasons(node_of(capacity, allocatable)) == wanted


@pytest.mark.parametrize(
    ("register", "handshake", "found"),
    [
        (CARDS, "Reported_2026.12.01 11:59:50", True),
        (CARDS, "Requesting_2026-12-01 11:59:50.123 +0000 UTC", True),
        (CARDS, "", True),
        (CARDS, "Deleted_2026.12.01 11:59:50", False),
        (CARDS, "Reported_2026.11.29 11:59:50", False),  # left over
        (CARDS, "Reported_9999.99.99 99:99:99", True),
        ("[]", "Reported_2026.12.01 11:59:50", False),
        ("", "Reported_2026.12.01 11:59:50", False),
    ],
)
def test_an_old_hami_shows_in_its_annotations(register: str, handshake: str, found: bool) -> None:
    wanted = ["HamiOffersCards"] if found else []
    assert reasons(node_of(register=register, handshake=handshake)) == wanted


def test_a_hami_is_gone_when_it_has_been_silent() -> None:
    node = node_of(register=CARDS, handshake="Reported_")
    first = judged(node, now_s=1000.0)
    assert first.look_again_s == 300.0
    later = judged(node, first.heartbeat, now_s=1200.0)
    assert (bool(later.conflicts), later.look_again_s) == (True, 100.0)
    silent = judged(node, later.heartbeat, now_s=1300.0)
    assert (silent.conflicts, silent.look_again_s) == ((), None)
    node["metadata"]["annotations"][HANDSHAKE] = "Reported_again"
    back = judged(node, silent.heartbeat, now_s=1301.0)
    assert (bool(back.conflicts), back.look_again_s) == (True, 300.0)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
keys = st.sampled_from(["metadata", "status", "capacity", "allocatable", "annotations", "name"])
odd_nodes = st.dictionaries(
    keys, st.dictionaries(keys | st.just(REGISTER) | st.just("nvidia.com/gpu"), json_values)
)


@given(odd_nodes)
def test_whatever_a_node_looks_like_it_is_judged(node: dict[str, Any]) -> None:
    assert len(judged(node).conflicts) <= 2
