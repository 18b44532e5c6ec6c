"""Pods while something is wrong: templates vanish, replicas race, servers refuse or are away."""

import asyncio
import logging

import pytest

from casaba.kube import (
    RESOURCE_CLAIM_TEMPLATES,
    KubeError,
    Refused,
    ServerError,
)
from casaba.simulation.api_server.faults import LostAnswer, Refusal, Slowness, Target
from tests.component.webhook.site import (
    NAMESPACE,
    Object,
    Replica,
    Site,
    classic_pod,
    review_of,
    until,
)
from tests.component.webhook.templates import (
    LAST_USED,
    LONG_AGO,
    TEMPLATES,
    age,
    deaf,
    is_allowed,
    outcomes,
    remembering,
    stamps,
    template_of,
)


async def test_a_template_that_vanished_unheard_is_made_again(site: Site) -> None:
    async with remembering(site) as replica:
        await site.forget_templates()
        assert (await replica.post(review_of(classic_pod())))["allowed"]
        assert len(site.templates()) == 1
        assert await outcomes(replica) == {"created": 1}


async def test_a_template_that_was_replaced_unheard_is_stamped(site: Site) -> None:
    async with remembering(site) as replica:
        (before,) = site.templates()
        await site.forget_templates()
        kept = {key: before["metadata"][key] for key in ("name", "labels", "annotations")}
        body = {"metadata": kept, "spec": before["spec"]}
        await site.client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=NAMESPACE)
        assert stamps(site) == [LONG_AGO]
        assert (await replica.post(review_of(classic_pod())))["allowed"]
        assert stamps(site) != [LONG_AGO]
        assert await outcomes(replica) == {"renewed": 1}


async def test_a_template_that_is_there_unheard_is_used(site: Site) -> None:
    async with deaf(site) as replica:
        for _ in range(2):
            assert (await replica.post(review_of(classic_pod())))["allowed"]
        assert await outcomes(replica) == {"created": 1, "found": 1}
        await age(site, LONG_AGO)
        assert (await replica.post(review_of(classic_pod())))["allowed"]
        assert stamps(site) != [LONG_AGO]
        assert len(site.templates()) == 1


async def test_a_template_that_vanishes_between_two_calls_is_made_again(site: Site) -> None:
    async with deaf(site) as replica:
        await replica.post(review_of(classic_pod()))
        gone = Refusal(code=404, message="gone")
        site.server.faults.add(gone, Target(verbs={"get"}, resources=TEMPLATES))
        assert (await replica.post(review_of(classic_pod())))["allowed"]


async def test_an_answer_that_was_lost_is_asked_for_again(site: Site, replica: Replica) -> None:
    site.server.faults.add(LostAnswer(done=True), Target(verbs={"create"}, resources=TEMPLATES))
    pod = await site.create_pod(classic_pod())
    assert [it["metadata"]["name"] for it in site.templates()] == [template_of(pod)]


async def test_replicas_that_race_make_one_template(site: Site) -> None:
    async with site.replica() as one, site.replica() as two:
        site.server.faults.add(
            Slowness(delay_s=0.05), Target(verbs={"create"}, resources=TEMPLATES), times=4
        )
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(each.post(review_of(classic_pod(), uid)))
                for uid in map(str, range(6))
                for each in (one, two)
            ]
        assert all(task.result()["allowed"] for task in tasks)
        assert len({task.result()["patch"] for task in tasks}) == 1
        assert len(site.templates()) == 1


async def test_a_template_of_somebody_else_is_not_taken(site: Site, replica: Replica) -> None:
    name = template_of(await site.create_pod(classic_pod(), dry_run=True))
    spec: Object = {"spec": {"devices": {}}}
    await site.client.create(
        RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name}, "spec": spec}, namespace=NAMESPACE
    )
    with pytest.raises(Refused, match=f"delete -n {NAMESPACE} resourceclaimtemplate {name}"):
        await site.create_pod(classic_pod())


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (403, "exceeded quota: claims, requested: 1, used: 5, limited: 5"),
        (403, "unable to create new content in namespace default because it is being terminated"),
        (422, "spec is wrong"),
        (404, 'namespaces "default" not found'),
    ],
)
async def test_a_refused_template_refuses_the_pod_for_the_same_reason(
    site: Site, replica: Replica, code: int, message: str
) -> None:
    fault = Refusal(code=code, message=message)
    site.server.faults.add(fault, Target(verbs={"create"}, resources=TEMPLATES))
    with pytest.raises(Refused) as refusal:
        await site.create_pod(classic_pod())
    assert refusal.value.code == code
    assert message in str(refusal.value)
    assert await replica.metric("casaba_webhook_templates_total", outcome="failed") == 1
    await site.create_pod(classic_pod())


@pytest.mark.parametrize("verb", ["create", "patch", "get"])
@pytest.mark.parametrize(
    "fault", [Refusal(code=500), Refusal(code=503), Refusal(code=401), LostAnswer()], ids=str
)
async def test_a_server_in_trouble_refuses_the_pod_for_now(
    site: Site, verb: str, fault: Refusal | LostAnswer
) -> None:
    async with (remembering if verb == "patch" else deaf)(site) as replica:
        if verb == "get":
            await replica.post(review_of(classic_pod()))
        site.server.faults.add(fault, Target(verbs={verb}, resources=TEMPLATES), times=None)
        if verb == "patch":  # without an answer, the whole is begun anew
            site.server.faults.add(fault, Target(verbs={"create"}, resources=TEMPLATES), times=None)
        response = await replica.post(review_of(classic_pod()))
        assert response["status"]["code"] == 503
        assert "try again" in response["status"]["message"]
        site.server.faults.clear()
        assert (await replica.post(review_of(classic_pod())))["allowed"]


@pytest.mark.parametrize(("times", "allowed"), [(2, True), (None, False)])
async def test_conflicts_are_met_by_trying_again_but_not_for_ever(
    site: Site, replica: Replica, times: int | None, allowed: bool
) -> None:
    target = Target(verbs={"create"}, resources=TEMPLATES)
    site.server.faults.add(Refusal(code=409, message="storm"), target, times=times)
    response = await replica.post(review_of(classic_pod()))
    assert response["allowed"] is allowed
    assert allowed or response["status"]["code"] == 409


async def test_a_server_that_asks_for_patience_gets_some(site: Site, replica: Replica) -> None:
    target = Target(verbs={"create"}, resources=TEMPLATES)
    site.server.faults.add(Refusal(code=429, retry_after_s=1), target)
    assert (await replica.post(review_of(classic_pod())))["allowed"]
    site.server.faults.add(Refusal(code=429, retry_after_s=60), target)
    await site.forget_templates()
    response = await replica.post(review_of(classic_pod(memory_mib=1024)))
    assert response["status"]["code"] == 429


async def test_a_server_that_is_away_refuses_pods_for_now(site: Site) -> None:
    async with site.replica() as replica:
        await site.server.stop()
        response = await replica.post(review_of(classic_pod()))
        assert response["status"]["code"] == 503
        assert "can't reach the API server" in response["status"]["message"]
        await site.server.start()
        await until(is_allowed(replica))


async def test_a_slow_server_is_not_waited_for_too_long(site: Site, replica: Replica) -> None:
    site.server.faults.add(Slowness(delay_s=20), Target(verbs={"create"}, resources=TEMPLATES))
    response = await replica.post(review_of(classic_pod()), query="?timeout=1s")
    assert response["status"]["code"] == 504
    assert "within 0.5 s" in response["status"]["message"]


async def test_a_later_refusal_leaves_only_a_stamped_template(site: Site, replica: Replica) -> None:
    pod = classic_pod()
    pod["spec"]["containers"].append({"name": "Not a name", "image": "i"})
    with pytest.raises(KubeError):
        await site.create_pod(pod)
    assert not list(site.server.objects("pods"))
    assert all(it["metadata"]["annotations"][LAST_USED] for it in site.templates())


async def test_before_the_slices_are_known_pods_are_to_come_again(site: Site) -> None:
    slices = Target(resources={"resourceslices"})
    site.server.faults.add(Refusal(code=503), slices, times=None)
    async with site.replica(wait=False) as replica:
        response = await replica.post(review_of(classic_pod()))
        assert response["status"]["code"] == 503
        assert "ResourceSlices have not been read" in response["status"]["message"]
        other = {"metadata": {"name": "other"}, "spec": {"containers": []}}
        assert (await replica.post(review_of(other)))["allowed"]
        site.server.faults.clear()
        await until(is_allowed(replica))


async def test_no_content_of_a_pod_is_logged(
    site: Site, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "casaba")
    secret = "hunter2-very-secret"
    pod = classic_pod("with-secret")
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": secret}]
    await site.create_pod(pod)
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] = secret
    await replica.post(review_of(pod))
    await replica.post(b'{"request": "' + secret.encode())
    told = [str(vars(record)) for record in caplog.records if "webhook" in record.name]
    assert told
    assert not [text for text in told if secret in text]


async def test_a_server_error_is_told_as_such_by_the_client(site: Site, replica: Replica) -> None:
    site.server.faults.add(
        Refusal(code=500), Target(verbs={"create"}, resources=TEMPLATES), times=None
    )
    with pytest.raises(ServerError, match="try again"):
        await site.create_pod(classic_pod())
