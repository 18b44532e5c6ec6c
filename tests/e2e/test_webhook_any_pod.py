"""Whatever is sent to the real API server: stored as it has to be, or refused; never a failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from casaba.policy.convert import wants_conversion
from casaba.settings.conversion import ConversionSettings
from tests.cluster.bed import Bed
from tests.component.webhook.certificates import Authority
from tests.e2e.held_pods import HALF, Object, held_pod
from tests.e2e.plain_api import JSON, MERGE, STRATEGIC_MERGE, Reply
from tests.e2e.webhook_site import WebhookSite, webhook_site
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.pods import PLAIN, gpu, pod, uses
from tests.unit.policy.convert.test_any_init import Asked, pod_of, several_cards
from tests.unit.policy.convert.test_any_pod import spoilt_pods

PODS_NAMESPACE = "webhook-any-pod"
SETTINGS = ConversionSettings()


@pytest.fixture(scope="module")
def site(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """A webhook that is asked, and sees the bed's own cards."""
    with webhook_site(bed, tmp_path_factory.mktemp("webhook"), PODS_NAMESPACE) as site:
        site.run_webhook(SETTINGS)
        site.wait_until_asked(
            pod(main=gpu(1, percent=50)), lambda it: bool(it.status == 201 and uses(it.body))
        )
        yield site


def check_answer(reply: Reply) -> None:
    """Stored as it has to be, or refused with the fault of who sent it."""
    assert reply.status < 500, reply
    assert "failed calling webhook" not in reply.message
    assert "resulted in error" not in reply.message, "a condition must hold for any pod or not"
    assert "can't be made" not in reply.message, "the template is not as the API server wants it"
    if reply.status in (200, 201):
        assert not wants_conversion(reply.body, SETTINGS)


@settings(max_examples=250, deadline=None)
@given(spoilt_pods())
def test_any_pod_is_stored_or_refused(site: WebhookSite, spoilt: tuple[Object, Case]) -> None:
    document, _ = spoilt
    reply = site.create_pod(document, dry_run=True)
    event(str(reply.status))
    check_answer(reply)


@settings(max_examples=50, deadline=None)
@given(several_cards)
def test_any_good_pod_is_stored(site: WebhookSite, wanted: list[Asked]) -> None:
    reply = site.create_pod(pod_of(wanted), dry_run=True)
    check_answer(reply)
    assert reply.status == 201, reply
    assert set(uses(reply.body)) == {one.name for one in wanted}


@pytest.fixture
def held(site: WebhookSite) -> Iterator[str]:
    """A converted pod of the table's name, which updates are for."""
    reply = site.create_pod(held_pod("pod"))
    assert reply.status == 201, reply
    path = site.pods("pod")
    yield path
    site.api.call("DELETE", f"{path}?gracePeriodSeconds=0")


updates = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@updates
@given(spoilt_pods(), st.sampled_from([("PUT", JSON), ("PATCH", MERGE)]))
def test_any_update_is_stored_or_refused(
    site: WebhookSite, held: str, spoilt: tuple[Object, Case], way: tuple[str, str]
) -> None:
    (document, _), (method, kind) = spoilt, way
    reply = site.api.call(method, f"{held}?dryRun=All", document, kind=kind)
    event(str(reply.status))
    check_answer(reply)


def some_of(right: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The amount that the pod was made with, mostly; None takes it away."""
    return st.sampled_from([right, str(right), right, None, *others])


amounts = st.fixed_dictionaries(
    {},
    optional={
        "nvidia.com/gpu": some_of(1, 2, "1000m", "x", -1),
        "nvidia.com/gpumem": some_of(10240, "10.24k", "10Ki", "10Gi"),
        "nvidia.com/gpucores": some_of(50, "0.5", 101),
        "nvidia.com/priority": some_of(None, 1),
    },
)


@updates
@given(amounts, amounts)
def test_any_amounts_applied_again_change_nothing(
    site: WebhookSite, held: str, limits: Object, requests: Object
) -> None:
    """What kubectl sends for them; None takes one away."""
    container = {"name": "main", "resources": {"limits": limits, "requests": requests}}
    patch = {"spec": {"containers": [container]}}
    reply = site.api.call("PATCH", f"{held}?dryRun=All", patch, kind=STRATEGIC_MERGE)
    event(str(reply.status))
    check_answer(reply)
    if reply.status == 200:
        assert reply.body["spec"] == site.api.call("GET", held).body["spec"]


def many_containers(count: int, container: Object) -> Object:
    """A pod of so many."""
    return pod(spec={"containers": [{"name": f"c-{n}", **container} for n in range(count)]})


def large_pod(size_bytes: int) -> Object:
    """A pod of about that size."""
    return held_pod("large", annotations={"a": "x" * size_bytes})


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (large_pod(5 << 20), 413),
        (large_pod(2 << 20), 422),
        (json.dumps(held_pod("NAME")).replace("NAME", "\xff").encode("latin-1"), 422),
        (b"\x00\xff", 400),
        (many_containers(5000, gpu(1, mem=1)), 422),
        (many_containers(5000, PLAIN), 201),
        (pod(spec={"containers": None}), 422),
        (pod(spec={"containers": None, "initContainers": [{"name": "i", **HALF}]}), 422),
    ],
    ids=[
        "5-MiB",
        "2-MiB",
        "no-utf8-inside",
        "no-json",
        "5000-with-cards",
        "5000-without",
        "none",
        "no-app",
    ],
)
def test_what_is_too_much_or_nothing_at_all(
    site: WebhookSite, content: Object | bytes, status: int
) -> None:
    reply = site.create_pod(content, dry_run=True)
    check_answer(reply)
    assert reply.status == status, reply.message


def test_a_pair_that_does_not_match_leaves_the_one_before(site: WebhookSite) -> None:
    """And an authority that ran out is told, while pods are still converted."""

    def convert() -> None:
        reply = site.create_pod(held_pod("served"), dry_run=True)
        assert uses(reply.body) == {"main": "main"}, reply

    good, webhook = site.authority.pair(), site.webhook
    site.volume.put(replace(good, key=site.authority.pair().key), site.authority.pem)
    webhook.wait_for("certificate.refused")
    convert()
    site.volume.put(good, Authority(ends_in_s=2).pem)
    webhook.wait_for("webhook.not_ready", reason="the certificate's authority has expired")
    convert()
    ready = len(webhook.events("webhook.ready"))
    site.volume.put(site.authority.pair(), site.authority.pem)
    webhook.wait_for("webhook.ready", ready + 1)
    convert()


def test_no_review_was_a_fault_of_ours(site: WebhookSite) -> None:
    """After all these."""
    assert not site.webhook.events("review.failed")
    refused = site.webhook.events("review.refused")
    assert {one["outcome"] for one in refused} <= {"refused", "invalid"}
