"""The doctor at a cluster: what it finds, and that nothing that fails ends it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from casaba.kube import MUTATING_WEBHOOKS, NAMESPACES, RESOURCE_SLICES, KubeClient
from casaba.policy.diagnosis import Unanswered
from casaba.services.doctor.parts import agent_metrics
from casaba.services.doctor.pod_metrics import ask_pods
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.faults import LostAnswer, Refusal, Slowness, Target, Weather
from tests.component.doctor.clinic import (
    NODE,
    SETTINGS,
    WELL,
    Found,
    access,
    furnish,
    grant,
    node,
    pod,
    register_hami,
)
from tests.component.doctor.gateway import Gateway
from tests.component.webhook import site as sites
from tests.component.webhook.certificates import Authority
from tests.component.webhook.site import NAMESPACE, Replica, Site

EXPIRY = "casaba_webhook_certificate_expiry_timestamp_seconds"
READ = (
    *("nodes", "pods", "resourceslices", "resourceclaims", "deviceclasses", "events", "leases"),
    *("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """With parts of casaba in it, of which only the webhook runs."""
    async with sites.site(tmp_path) as site:
        furnish(site)
        yield site


@pytest.fixture
async def replica(site: Site) -> AsyncIterator[Replica]:
    """The webhook that is asked."""
    async with site.replica() as replica:
        await site.ask_webhook(replica)
        yield replica


@pytest.fixture
async def gateway(site: Site) -> AsyncIterator[Gateway]:
    """A way to the server through which agents are reached, too."""
    async with Gateway(site.server.admin_config(), metrics=WELL) as gateway:
        yield gateway


async def test_a_healthy_cluster(replica: Replica, gateway: Gateway) -> None:
    found = await Found.of(gateway.config)
    assert found.are("wrong", "warning", "unknown") == []
    assert found.by_id["webhook.trial"].state == "ok"
    assert found.by_id["parts.guards"].state == "ok"


async def test_nothing_is_changed(site: Site, replica: Replica, gateway: Gateway) -> None:
    before = site.server.version
    await Found.of(gateway.config)
    assert site.server.version == before
    writes = [url for method, url in gateway.asked if method != "GET"]
    assert len(writes) == 2
    assert all("dryRun=All" in url for url in writes)


async def test_the_gate_is_off(replica: Replica, gateway: Gateway) -> None:
    gateway.gate, gateway.version = False, "v1.35.2"
    found = await Found.of(gateway.config)
    assert "cluster.gate" in found.are("wrong")
    assert "allowMultipleAllocations" in found.by_id["cluster.gate"].seen
    assert "--feature-gates=DRAConsumableCapacity=true" in found.by_id["cluster.gate"].advice


async def test_a_version_too_old(replica: Replica, gateway: Gateway) -> None:
    gateway.version, gateway.resource_api = "v1.33.4", False
    found = await Found.of(gateway.config)
    assert {"cluster.version", "cluster.resource-api"} <= set(found.are("wrong"))
    assert found.by_id["cluster.gate"].state == "skipped"


async def test_a_guard_that_is_not_alive(replica: Replica, gateway: Gateway) -> None:
    labels = 'namespace="team",pod="tenant",container="main"'
    gateway.metrics = f"{WELL}casaba_guard_alive{{{labels}}} 0\n"
    found = await Found.of(gateway.config)
    assert found.are("wrong") == ["parts.guards"]
    assert "team/tenant main" in found.by_id["parts.guards"].seen


async def test_agents_are_asked_at_the_port_that_their_pods_name(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    agent = pod("node-agent", "agent-1")
    agent["spec"]["containers"][0]["ports"] = [{"name": "metrics", "containerPort": 9999}]
    site.server.seed([agent])
    await Found.of(gateway.config)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/agent-1:9999/proxy/metrics"
    assert ("GET", path) in gateway.asked


async def test_what_the_webhook_itself_tells_of_its_certificate(
    replica: Replica, gateway: Gateway
) -> None:
    _, told = await replica.probe("/metrics")
    gateway.metrics = f"{WELL}{told}"
    assert (await Found.of(gateway.config)).are("wrong") == []
    gateway.metrics = WELL + re.sub(rf"^({EXPIRY}) .*", r"\1 1.7e9", told, flags=re.M)
    found = await Found.of(gateway.config)
    assert found.are("wrong") == ["webhook.authority"]
    assert "webhook-1 serves has expired (2023-11-14T" in found.by_id["webhook.authority"].seen


async def test_metrics_that_are_none(replica: Replica, gateway: Gateway) -> None:
    gateway.metrics = "<html>"
    found = await Found.of(gateway.config)
    assert found.are("unknown") == ["parts.registration", "parts.guards"]


async def test_a_device_plugin(site: Site, replica: Replica, gateway: Gateway) -> None:
    site.server.seed([node(allocatable={"nvidia.com/gpu": "1"}, capacity={"nvidia.com/gpu": "1"})])
    found = await Found.of(gateway.config)
    assert found.are("wrong") == ["nodes.conflicts"]


async def test_a_hami_that_is_there_and_one_that_is_gone(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    await register_hami(site, silent_s=0)
    found = await Found.of(gateway.config)
    assert found.are("wrong") == ["nodes.conflicts"]
    assert found.by_id["nodes.conflicts"].seen.endswith("edge-1 (an old HAMi)")
    assert "kubectl annotate node NODE" in found.by_id["nodes.conflicts"].advice
    await register_hami(site, silent_s=600)
    assert (await Found.of(gateway.config)).are("wrong") == []


@pytest.mark.parametrize(("restricted", "state"), [(True, "skipped"), (False, "unknown")])
async def test_agents_that_a_network_policy_hides(
    site: Site, replica: Replica, gateway: Gateway, restricted: bool, state: str
) -> None:
    gateway.silent = True
    found = await Found.of(gateway.config, metrics_restricted=restricted)
    assert found.are("wrong") == []
    for told in (found.by_id["parts.registration"], found.by_id["parts.guards"]):
        assert told.state == state
        assert "i/o timeout" in told.seen
        assert "networkPolicy.metricsFrom" in f"{told.seen} {told.advice}"


async def test_each_of_many_pods_that_give_no_answer_is_told(gateway: Gateway) -> None:
    gateway.hangs = True
    pods = [pod("node-agent", f"agent-{number}") for number in range(40)]
    async with KubeClient(gateway.config) as client:
        asked = await ask_pods(client, pods, agent_metrics, port=9394, limit_s=0.2)
    assert [one for one, _ in asked] == pods
    reasons = [told.reason for _, told in asked if isinstance(told, Unanswered)]
    assert len(reasons) == len(pods)
    assert reasons[0] == "no answer within 0.2 s"
    assert re.fullmatch(r"not asked, as \d+ others gave no answer", reasons[-1])


async def test_classic_pods_are_not_to_be_converted(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    await site.client.delete(MUTATING_WEBHOOKS, "casaba")
    found = await Found.of(gateway.config)
    assert found.are("wrong", "unknown") == []
    assert "no MutatingWebhookConfiguration casaba" in found.by_id["webhook.trial"].seen


async def test_a_namespace_that_the_webhook_leaves_alone(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [NAMESPACE]}
    await site.ask_webhook(replica, namespaceSelector={"matchExpressions": [names]})
    found = await Found.of(gateway.config)
    assert found.are("wrong", "unknown") == []
    assert f"leaves the namespace {NAMESPACE} alone" in found.by_id["webhook.trial"].seen
    await site.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    elsewhere = await Found.of(gateway.config, trial_namespace="team")
    assert elsewhere.by_id["webhook.trial"].state == "ok"


async def test_a_namespace_that_wants_to_be_left_alone(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    label = {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}
    await site.ask_webhook(replica, namespaceSelector={"matchExpressions": [label]})
    assert (await Found.of(gateway.config)).by_id["webhook.trial"].state == "ok"
    labels = {"metadata": {"labels": {"hami.io/webhook": "ignore"}}}
    await site.client.patch(NAMESPACES, NAMESPACE, labels)
    found = await Found.of(gateway.config)
    assert found.by_id["webhook.trial"].state == "skipped"


async def test_a_webhook_that_converts_other_names_and_no_card_to_be_seen(
    site: Site, gateway: Gateway
) -> None:
    await site.client.delete_collection(RESOURCE_SLICES)
    conversion = ConversionSettings(
        count_resource="example.com/card", memory_resource="example.com/mib"
    )
    async with site.replica(conversion=conversion) as other:
        await site.ask_webhook(other)
        names = replace(SETTINGS.names, resource="example.com/card")
        found = await Found.of(gateway.config, names=names)
    assert found.by_id["webhook.trial"].state == "ok"


async def test_nobody_reaches_the_webhook(site: Site, gateway: Gateway) -> None:
    async with site.replica() as gone:
        await site.ask_webhook(gone)
    found = await Found.of(gateway.config)
    assert found.are("wrong") == ["webhook.trial"]
    assert "failed calling webhook" in found.by_id["webhook.trial"].seen
    assert "reach" in found.by_id["webhook.trial"].advice


async def test_a_certificate_of_somebody_else(site: Site, gateway: Gateway) -> None:
    async with site.replica() as replica:
        await site.ask_webhook(replica)
        site.authority = Authority()
        await site.ask_webhook(replica)
        found = await Found.of(gateway.config)
    assert found.are("wrong") == ["webhook.trial"]
    assert "caBundle" in found.by_id["webhook.trial"].advice


async def test_an_authority_that_has_expired(
    site: Site, replica: Replica, gateway: Gateway
) -> None:
    site.authority = Authority(ends_in_s=-60)
    await site.ask_webhook(replica)
    found = await Found.of(gateway.config)
    assert {"webhook.authority", "webhook.trial"} == set(found.are("wrong"))
    assert "expired" in found.by_id["webhook.authority"].seen


async def test_a_webhook_that_fails_open(site: Site, gateway: Gateway) -> None:
    async with site.replica() as gone:
        await site.ask_webhook(gone, failurePolicy="Ignore")
    found = await Found.of(gateway.config)
    assert "was stored as it is" in found.by_id["webhook.trial"].seen
    assert "webhook.configuration" in found.are("warning")


async def test_one_node_alone(site: Site, replica: Replica, gateway: Gateway) -> None:
    site.server.seed([node("edge-2")])
    every = await Found.of(gateway.config)
    one = await Found.of(gateway.config, node=NODE)
    assert {"parts.agents", "parts.slices"} <= set(every.are("wrong"))
    assert one.are("wrong", "unknown") == []


async def test_a_node_that_is_not_there(replica: Replica, gateway: Gateway) -> None:
    found = await Found.of(gateway.config, node="edge-9")
    assert "there is no node edge-9" in found.by_id["nodes.labels"].seen


async def test_a_namespace_that_is_not_there(replica: Replica, gateway: Gateway) -> None:
    found = await Found.of(gateway.config, trial_namespace="nowhere")
    assert found.by_id["webhook.trial"].state == "unknown"
    assert "nowhere" in found.by_id["webhook.trial"].seen


async def test_a_server_that_is_away(site: Site) -> None:
    config = site.server.admin_config()
    await site.server.stop()
    found = await Found.of(config)
    assert found.are("unknown") == ["cluster.version"] == list(found.by_id)
    assert found.by_id["cluster.version"].advice


async def test_one_who_may_nothing(site: Site, replica: Replica) -> None:
    found = await Found.of(access(site, "nobody"))
    assert found.are("wrong") == []
    assert {"nodes.labels", "parts.slices", "webhook.configuration"} <= set(found.are("unknown"))
    for finding in found.by_id.values():
        if finding.state == "unknown":
            assert "nobody" in finding.seen or "system:" in finding.seen, finding


async def test_the_rights_that_are_enough(site: Site, replica: Replica) -> None:
    rules = [
        {"apiGroups": ["", "resource.k8s.io"], "resources": [*READ[:6]], "verbs": ["list"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": [*READ[7:]],
            "verbs": ["list"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
    ]
    found = await Found.of(await grant(site, "doctor", rules))
    assert found.are("wrong") == []
    assert found.are("unknown") == ["parts.registration", "parts.guards"], "not simulated"


FAULTS = (Refusal(code=500), Refusal(code=429), LostAnswer(), LostAnswer(done=True))
HIDDEN = {
    "nodes": "nodes.labels",
    "pods": "parts.agents",
    "resourceslices": "parts.slices",
    "deviceclasses": "parts.class",
    "events": "parts.problems",
    "leases": "controller.leader",
    "mutatingwebhookconfigurations": "webhook.configuration",
    "validatingwebhookconfigurations": "webhook.configuration",
}
"""The check that can't look without a resource; claims tell others only more."""


@pytest.mark.parametrize("resource", READ)
async def test_a_fault_hides_only_what_it_meets(resource: str, site: Site) -> None:
    config = site.server.admin_config()
    before, hidden = await Found.of(config), HIDDEN.get(resource)
    for fault in FAULTS:
        site.server.faults.add(fault, Target(resources={resource}), times=None)
        found = await Found.of(config)
        site.server.faults.clear()
        assert set(found.are("wrong")) <= set(before.are("wrong"))
        if hidden:
            assert found.by_id[hidden].state == "unknown"
            assert found.by_id[hidden].advice
        for check in {*HIDDEN.values()} - {hidden, *DEPENDENT.get(resource, ())}:
            assert found.by_id[check] == before.by_id[check]


DEPENDENT = {
    "nodes": ("parts.agents", "parts.slices"),
    "pods": ("controller.leader", "webhook.configuration", "parts.problems"),
    "resourceslices": ("parts.agents",),
}
"""Checks that compare it with something else."""


async def test_storms(site: Site) -> None:
    config = site.server.admin_config()
    before = await Found.of(config)
    for seed in range(10):
        chances = [(0.2, fault) for fault in FAULTS]
        site.server.faults.storm(Weather(seed=seed, chances=chances))
        found = await Found.of(config)
        assert list(found.by_id) == list(before.by_id)
    site.server.faults.clear()
    assert await Found.of(config) == before


async def test_a_list_that_never_comes(site: Site) -> None:
    site.server.faults.add(Slowness(delay_s=600), Target(resources={"nodes"}), times=None)
    found = await Found.of(site.server.admin_config(), look_s=5.0)
    assert found.by_id["nodes.labels"].state == "unknown"
    assert found.by_id["cluster.version"].state == "ok"


async def test_names_that_the_chart_lets_people_choose(site: Site, gateway: Gateway) -> None:
    labels = (("accelerator", "yes"), ("site", "x"))
    names = replace(SETTINGS.names, node_labels=labels, namespace=NAMESPACE)
    found = await Found.of(gateway.config, names=names)
    assert "accelerator=yes site=x" in found.by_id["nodes.labels"].seen
    assert found.by_id["nodes.labels"].advice == "kubectl label node NODE accelerator=yes site=x"
