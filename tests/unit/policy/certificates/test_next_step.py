"""The table of the module, line by line."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from casaba.policy.certificates import (
    DUE,
    CertificateState,
    CertificateTimes,
    ExtendBundle,
    Fault,
    Held,
    IssueServing,
    MakeAuthority,
    Step,
    TrimBundle,
    Wait,
    next_step,
)

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TIMES = CertificateTimes(
    authority_lifetime_s=300 * DAY.total_seconds(),
    serving_lifetime_s=90 * DAY.total_seconds(),
    renew_at=2 / 3,
    bundle_settle_s=15.0,
    propagation_s=600.0,
)
AUTHORITY = Held(fingerprint="new", expires_at=NOW + 200 * DAY)
SERVING = Held(fingerprint="leaf", expires_at=NOW + 60 * DAY)
GOOD: dict[str, Any] = {
    "authority": AUTHORITY,
    "serving": SERVING,
    "serving_signer": "new",
    "bundles": {"m": frozenset({"new"}), "v": frozenset({"new"})},
    "bundled_for_s": 1000.0,
    "serving_for_s": 1000.0,
}


def step(**changes: object) -> Step:
    return next_step(CertificateState(**{**GOOD, **changes}), NOW, TIMES)


def bundles(**trusted: str) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in trusted.items()}


def test_when_all_is_well_it_waits_for_the_first_to_be_due() -> None:
    found = step()
    assert isinstance(found, Wait)
    assert found.is_done
    assert found.seconds == pytest.approx(30 * DAY.total_seconds())


@pytest.mark.parametrize("fault", list(Fault))
def test_an_authority_that_cannot_sign_is_replaced(fault: Fault) -> None:
    assert step(authority=fault) == MakeAuthority(why=fault.value)


def test_an_authority_that_is_due_is_replaced() -> None:
    old = Held(fingerprint="new", expires_at=NOW + 100 * DAY)
    assert step(authority=old) == MakeAuthority(why=DUE)
    assert step(authority=Held(fingerprint="new", expires_at=NOW - DAY)) == MakeAuthority(why=DUE)


def test_every_webhook_trusts_the_authority_before_anything_else() -> None:
    assert step(bundles=bundles(m="", v="new"), serving=Fault.MISSING) == ExtendBundle(
        webhooks=("m",)
    )


def test_every_webhook_trusts_the_signer_of_what_is_served() -> None:
    found = step(
        bundles=bundles(m="new", v="new old"), serving=Fault.OTHER_SIGNER, serving_signer="old"
    )
    assert found == ExtendBundle(webhooks=("m",))


@pytest.mark.parametrize("fault", list(Fault))
def test_a_serving_certificate_that_is_no_good_is_replaced(fault: Fault) -> None:
    assert step(serving=fault, serving_signer=None) == IssueServing(why=fault.value)


def test_a_serving_certificate_that_is_due_is_replaced() -> None:
    assert step(serving=Held(fingerprint="leaf", expires_at=NOW + 29 * DAY)) == IssueServing(
        why=DUE
    )


def test_it_is_replaced_only_once_every_server_uses_the_bundles() -> None:
    found = step(serving=Fault.OTHER_SIGNER, serving_signer=None, bundled_for_s=10.0)
    assert found == Wait(seconds=5.0, is_done=False)


def test_where_no_webhook_is_configured_yet_nobody_is_waited_for() -> None:
    found = step(serving=Fault.MISSING, serving_signer=None, bundles={}, bundled_for_s=0.0)
    assert found == IssueServing(why=Fault.MISSING.value)


def test_an_old_authority_is_trusted_until_every_replica_has_changed() -> None:
    both = bundles(m="new old", v="new")
    assert step(bundles=both, serving_for_s=500.0) == Wait(seconds=100.0, is_done=True)
    assert step(bundles=both, serving_for_s=600.0) == TrimBundle(webhooks=("m",))
