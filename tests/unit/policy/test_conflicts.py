"""Who else gives out the cards, as a Node object tells."""

from datetime import UTC, datetime, timedelta
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
    forget_hami,
)
from tests.unit.managed import entry

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


SIGN = ("metadata", "annotations", HANDSHAKE)
LOCAL = "Reported_2026.12.01 11:59:50"
"""A time without its zone: it may be of now anywhere on earth."""


def hami_of(*entries: dict[str, Any], handshake: str = LOCAL) -> dict[str, Any]:
    """A node on which a HAMi is or was, with its managedFields."""
    node = node_of(register=CARDS, handshake=handshake)
    node["metadata"]["managedFields"] = list(entries)
    return node


def ago(seconds: float) -> datetime:
    return UTC_NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("silent_s", "kubelet_s", "server_s", "found"),
    [
        (10, 0, None, True),
        (299, 0, None, True),
        (300, 0, None, False),
        (4000, 3800, None, True),  # nobody has shown how late it is
        (4000, 3700, None, False),
        (4000, 3800, 0, False),
        (4000, None, 0, False),
        (200, None, 0, True),
        (10, 20, None, True),
        (10, None, 4000, True),  # the server's clock is never before what it stamped
    ],
)
def test_the_api_servers_own_times_tell_how_long_a_hami_is_silent(
    silent_s: float, kubelet_s: float | None, server_s: float | None, found: bool
) -> None:
    entries = [entry(ago(silent_s), *SIGN, manager="hami")]
    if kubelet_s is not None:
        entries.append(entry(ago(kubelet_s), "status", "conditions"))
    server = None if server_s is None else ago(server_s)
    verdict = find_conflicts(
        hami_of(*entries), None, RULES, now_s=1000.0, utc=UTC_NOW, server=server
    )
    assert bool(verdict.conflicts) == found
    assert (verdict.look_again_s is None) == (not found)


def test_what_is_left_of_the_silence_is_waited_for() -> None:
    node = hami_of(entry(ago(250), *SIGN), entry(ago(30), "status"))
    first = judged(node, now_s=1000.0)
    assert first.look_again_s == 80.0
    assert judged(node, first.heartbeat, now_s=1080.0).conflicts == ()
    node["metadata"]["managedFields"][1] = entry(ago(0), "status")
    assert judged(node, first.heartbeat, now_s=1001.0).look_again_s == 50.0


def test_others_that_write_are_no_sign_of_hami() -> None:
    node = hami_of(entry(ago(900), *SIGN), entry(ago(0), "metadata", "annotations", "x"))
    assert reasons(hami_of(entry(ago(0), "metadata", "annotations", "x"))) == ["HamiOffersCards"]
    assert judged(node).conflicts == ()


@given(
    gaps=st.lists(st.integers(0, 299), min_size=1, max_size=6),
    ahead_s=st.integers(-50_000, 50_000),
    starts=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_a_hami_that_writes_is_never_taken_for_gone(
    gaps: list[int], ahead_s: int, starts: list[bool]
) -> None:
    """However our own clock is set, and whenever we start again; as long as others write."""
    server, beat = ago(0), None
    for gap_s, start in zip(gaps, starts, strict=False):
        handshake = f"Reported_{server + timedelta(seconds=ahead_s):%Y.%m.%d %H:%M:%S}"
        signs = [entry(server, *SIGN)]
        for now in (server, server + timedelta(seconds=gap_s)):
            node = hami_of(*signs, entry(now, "status"), handshake=handshake)
            verdict = find_conflicts(
                node,
                None if start else beat,
                RULES,
                now_s=now.timestamp(),
                utc=now + timedelta(seconds=ahead_s),
                server=now,
            )
            beat = verdict.heartbeat
            assert [one.reason for one in verdict.conflicts] == ["HamiOffersCards"]
        server += timedelta(seconds=gap_s)


def test_who_is_gone_for_good_can_be_forgotten() -> None:
    (conflict,) = judged(node_of(register=CARDS, handshake=LOCAL)).conflicts
    assert conflict.message.endswith(forget_hami("edge-1"))
    assert forget_hami("edge-1") == f"kubectl annotate node edge-1 {REGISTER}- {HANDSHAKE}-"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
keys = st.sampled_from(["metadata", "status", "capacity", "allocatable", "annotations", "name"])
odd_nodes = st.dictionaries(
    keys | st.just("managedFields"),
    st.dictionaries(keys | st.just(REGISTER) | st.just("nvidia.com/gpu"), json_values),
)


@given(odd_nodes)
def test_whatever_a_node_looks_like_it_is_judged(node: dict[str, Any]) -> None:
    assert len(judged(node).conflicts) <= 2
