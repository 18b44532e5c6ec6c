"""Classic pods created at an API server that asks the webhook: what is stored, and what is told."""

import pytest

from casaba.kube import (
    NAMESPACES,
    PODS,
    Forbidden,
    Invalid,
)
from casaba.simulation.api_server.faults import Refusal, Target
from tests.component.webhook.site import (
    NAMESPACE,
    Replica,
    Site,
    classic_pod,
    review_of,
    until,
)
from tests.component.webhook.templates import LONG_AGO, TEMPLATES, age, stamps, template_of


async def test_a_classic_pod_is_stored_with_a_claim(site: Site, replica: Replica) -> None:
    pod = await site.create_pod(classic_pod())
    (container,) = pod["spec"]["containers"]
    (template,) = site.templates()
    assert "limits" not in container["resources"]
    assert template_of(pod) == template["metadata"]["name"]
    assert template["metadata"]["labels"] == {"casaba.dev/made-by": "webhook"}
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["capacity"]["requests"] == {"cores": "50", "memory": "10Gi"}
    assert await replica.metric("casaba_webhook_templates_total", outcome="created") == 1
    assert await replica.metric("casaba_webhook_reviews_total", outcome="changed") == 1


async def test_pods_of_one_content_share_a_template(site: Site, replica: Replica) -> None:
    first = await site.create_pod(classic_pod("one"))
    second = await site.create_pod(classic_pod("two"))
    other = await site.create_pod(classic_pod("three", memory_mib=2048))
    assert template_of(first) == template_of(second) != template_of(other)
    assert len(site.templates()) == 2


async def test_a_pod_that_gets_its_name_from_the_server(site: Site, replica: Replica) -> None:
    pods = [await site.create_pod(classic_pod("", generateName="job-")) for _ in range(2)]
    assert pods[0]["metadata"]["name"] != pods[1]["metadata"]["name"]
    assert len({template_of(pod) for pod in pods}) == len(site.templates()) == 1


async def test_a_pod_without_our_resources_is_left_alone(site: Site, replica: Replica) -> None:
    pod = classic_pod()
    del pod["spec"]["containers"][0]["resources"]
    stored = await site.create_pod(pod)
    assert "resourceClaims" not in stored["spec"]
    assert not site.templates()
    assert await replica.metric("casaba_webhook_reviews_total", outcome="allowed") == 1


async def test_a_dry_run_changes_nothing(site: Site, replica: Replica) -> None:
    pod = await site.create_pod(classic_pod(), dry_run=True)
    assert template_of(pod)
    assert not site.templates()
    await site.create_pod(classic_pod())
    await age(site, LONG_AGO)
    await site.create_pod(classic_pod("two"), dry_run=True)
    assert stamps(site) == [LONG_AGO]


async def test_a_dry_run_tells_that_the_template_would_be_refused(
    site: Site, replica: Replica
) -> None:
    site.server.faults.add(Refusal(code=403, message="quota"), Target(resources=TEMPLATES))
    with pytest.raises(Forbidden, match="quota"):
        await site.create_pod(classic_pod(), dry_run=True)


async def test_the_same_manifest_applied_again_changes_nothing(
    site: Site, replica: Replica
) -> None:
    stored = await site.create_pod(classic_pod())
    pod = await site.client.get(PODS.decoded_as(dict), "one", namespace=NAMESPACE)
    limits = classic_pod()["spec"]["containers"][0]["resources"]["limits"]
    pod["spec"]["containers"][0]["resources"] |= {"limits": limits, "requests": limits}
    pod["metadata"]["labels"]["again"] = "yes"
    again = await site.client.update(PODS.decoded_as(dict), "one", pod, namespace=NAMESPACE)
    assert again["spec"] == stored["spec"]
    assert again["metadata"]["labels"]["again"] == "yes"


async def test_a_wrong_pod_is_refused_with_the_fix(site: Site, replica: Replica) -> None:
    pod = classic_pod()
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] = "101"
    with pytest.raises(Invalid, match=r"denied the request: .*main.*gpucores"):
        await site.create_pod(pod)
    assert not site.templates()
    assert await replica.metric("casaba_webhook_reviews_total", outcome="refused") == 1


async def test_the_requests_namespace_counts(site: Site, replica: Replica) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "team-a"}})
    response = await replica.post(review_of(classic_pod(), namespace="team-a"))
    assert response["allowed"]
    assert [it["metadata"]["namespace"] for it in site.templates()] == ["team-a"]


async def test_warnings_reach_the_user(
    site: Site, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await site.create_pod(classic_pod(memory_mib=50_000))
    told = [record for record in caplog.records if record.name == "casaba.kube.server_warnings"]
    assert told


async def test_percentages_follow_the_cards_that_are_seen(site: Site, replica: Replica) -> None:
    pod = classic_pod()
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    del limits["nvidia.com/gpumem"]
    limits["nvidia.com/gpumem-percentage"] = "50"
    await site.create_pod(pod)
    (template,) = site.templates()
    assert "11514Mi" in str(template["spec"])


async def test_a_fresh_stamp_stays(site: Site, replica: Replica) -> None:
    await site.create_pod(classic_pod("one"))
    first = site.templates()
    await site.create_pod(classic_pod("two"))
    assert site.templates() == first


@pytest.mark.parametrize("stamp", [LONG_AGO, "2999-01-01T00:00:00Z"])
async def test_a_stamp_of_another_time_is_renewed(site: Site, replica: Replica, stamp: str) -> None:
    await site.create_pod(classic_pod("one"))
    await age(site, stamp)

    async def renewed() -> bool:
        await replica.post(review_of(classic_pod("two")))
        return stamps(site) != [stamp]

    await until(renewed)
    assert await replica.metric("casaba_webhook_templates_total", outcome="renewed") == 1
