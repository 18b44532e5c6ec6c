"""Whom webhooks trust for a certificate that somebody gives, step by step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.certificates import ExtendBundle, TrimBundle, Wait, next_trust

PROPAGATION_S = 600.0

AUTHORITIES = st.frozensets(st.sampled_from("abcd"))
BUNDLES = st.dictionaries(st.sampled_from(["one", "two", "three"]), AUTHORITIES)


def decided(
    wanted: frozenset[str], bundles: dict[str, frozenset[str]], wanted_for_s: float
) -> ExtendBundle | TrimBundle | Wait:
    return next_trust(wanted, bundles, wanted_for_s=wanted_for_s, propagation_s=PROPAGATION_S)


@given(AUTHORITIES.filter(bool), BUNDLES)
def test_it_ends_with_the_wanted_ones_everywhere_and_never_without_one(
    wanted: frozenset[str], bundles: dict[str, frozenset[str]]
) -> None:
    first = dict(bundles)
    match decided(wanted, bundles, 0.0):
        case ExtendBundle(webhooks=keys):
            bundles |= {key: bundles[key] | wanted for key in keys}
        case TrimBundle():
            raise AssertionError("somebody may still serve what another one signed")
    assert all(first[key] | wanted == bundles[key] for key in bundles)
    waiting = decided(wanted, bundles, 0.0)
    assert isinstance(waiting, Wait)
    match decided(wanted, bundles, waiting.seconds):
        case TrimBundle(webhooks=keys):
            bundles |= dict.fromkeys(keys, wanted)
    assert set(bundles.values()) <= {wanted}
    assert isinstance(decided(wanted, bundles, waiting.seconds), Wait)


@given(AUTHORITIES.filter(bool), BUNDLES, st.floats(0, 2 * PROPAGATION_S))
def test_a_step_is_of_webhooks_that_need_it(
    wanted: frozenset[str], bundles: dict[str, frozenset[str]], wanted_for_s: float
) -> None:
    match decided(wanted, bundles, wanted_for_s):
        case ExtendBundle(webhooks=keys):
            assert {*keys} == {key for key in bundles if not wanted <= bundles[key]}
        case TrimBundle(webhooks=keys):
            assert {*keys} == {key for key in bundles if wanted < bundles[key]}
            assert wanted_for_s >= PROPAGATION_S
        case Wait(seconds=seconds):
            assert 0 < seconds <= PROPAGATION_S
