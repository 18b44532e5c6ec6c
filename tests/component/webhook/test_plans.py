"""Plans are made once for pods that ask for the same, and anew when the cluster has changed."""

import pytest

from casaba.aiokit import running_beside
from casaba.kube import NAMESPACES, RESOURCE_QUOTAS
from casaba.policy.convert import ClusterFacts, PodRefused, convert_pod
from casaba.services.webhook import plans as module
from casaba.services.webhook.cluster import ClusterView
from casaba.services.webhook.plans import Plans
from casaba.settings.conversion import ConversionSettings
from tests.component.webhook.site import Site, until
from tests.unit.policy.convert.pods import NOTHING, TWO_A10, gpu, pod

SETTINGS = ConversionSettings()


def test_pods_that_ask_for_the_same_share_a_plan() -> None:
    plans = Plans(SETTINGS)
    first, second, other = (pod(main=gpu(1, mem=mib)) for mib in (1024, 1024, 2048))
    second["metadata"]["name"] = "second"
    plan = plans.plan(first, TWO_A10)
    assert plan == convert_pod(first, TWO_A10, SETTINGS)
    assert plans.plan(second, TWO_A10) is plan
    assert plans.plan(other, TWO_A10) == convert_pod(other, TWO_A10, SETTINGS) != plan


def test_other_facts_make_another_plan() -> None:
    plans = Plans(SETTINGS)
    asked = pod(main=gpu(1, mem=1024))
    for facts in (NOTHING, TWO_A10, NOTHING):
        assert plans.plan(asked, facts) == convert_pod(asked, facts, SETTINGS)


def test_facts_that_are_gone_are_not_taken_for_new_ones() -> None:
    """New facts may lie where others lay in memory."""
    plans = Plans(SETTINGS)
    asked = pod(main=gpu(1, mem=1024))
    for number in range(50):
        facts = ClusterFacts(cards=TWO_A10.cards[: number % 2])
        assert plans.plan(asked, facts) == convert_pod(asked, facts, SETTINGS)
        del facts


def test_a_refusal_is_told_each_time() -> None:
    plans = Plans(SETTINGS)
    for _ in range(2):
        with pytest.raises(PodRefused, match="cores"):
            plans.plan(pod(main=gpu(1, cores=101)), TWO_A10)


def test_few_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    plans = Plans(SETTINGS)
    for mib in (*range(1, 9), *range(1, 9)):
        asked = pod(main=gpu(1, mem=mib))
        assert plans.plan(asked, TWO_A10) == convert_pod(asked, TWO_A10, SETTINGS)


def test_a_plan_for_a_very_large_pod_is_not_kept() -> None:
    plans = Plans(SETTINGS)
    asked = pod(main=gpu(1, mem=1024))
    asked["spec"]["containers"] += [{"name": f"beside-{number}"} for number in range(500)]
    plan = plans.plan(asked, TWO_A10)
    assert plan == convert_pod(asked, TWO_A10, SETTINGS)
    assert plans.plan(asked, TWO_A10) is not plan


async def test_facts_that_come_to_the_same_are_the_same(site: Site) -> None:
    """The status of a quota changes with each pod; plans are not made anew for that."""
    for name in ("one", "two"):
        await site.client.create(NAMESPACES, {"metadata": {"name": name}})
        body = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "5"}}}
        await site.client.create(RESOURCE_QUOTAS, body, namespace=name)
    view = ClusterView(site.client)

    async def both_have(resource: str) -> bool:
        return all(resource in view.facts(name).quota_resources for name in ("one", "two"))

    async def second_change_is_seen() -> bool:
        seen.append(view.facts("one"))
        return "secrets" in view.facts("two").quota_resources

    async with running_beside(*view.followers()):
        await until(lambda: both_have("pods"))
        seen = [view.facts("one")]
        first = {"metadata": {"labels": {"changed": "yes"}}}
        await site.client.patch(RESOURCE_QUOTAS, "quota", first, namespace="one")
        second = {"spec": {"hard": {"secrets": "1"}}}
        await site.client.patch(RESOURCE_QUOTAS, "quota", second, namespace="two")
        await until(second_change_is_seen)
        assert all(facts is seen[0] for facts in seen)
