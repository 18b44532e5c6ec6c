"""Each check of a cluster: what is seen, and what it is taken for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.diagnosis import Finding, Unseen, exit_code
from casaba.policy.diagnosis.cluster.observations import (
    Canary,
    Trial,
    Webhooks,
)
from casaba.policy.diagnosis.cluster.tables import (
    CLUSTER_CHECKS,
    PREINSTALL_CHECKS,
    diagnose_cluster,
    diagnose_preinstall,
    diagnose_uninstall,
)
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.uninstall import HelmRelease
from tests.unit.doctor import healthy
from tests.unit.doctor.cluster_cases import CASES, NOT_CALLED, NOTHING, OLD, PLUGIN, V134
from tests.unit.doctor.healthy import CLUSTER, device_class, event, node
from tests.unit.doctor.releases import (
    AT_SITE,
    ELSEWHERE,
    RENAMED,
    SILENT,
    SITE,
    hami,
    stands_for,
    tried,
)


def found(check: str, changes: dict[str, Any]) -> Finding:
    (one,) = (one for one in diagnose_cluster(replace(CLUSTER, **changes)) if one.id == check)
    return one


def test_nothing_is_wrong_with_a_healthy_cluster() -> None:
    findings = diagnose_cluster(CLUSTER)
    assert {one.state for one in findings} == {"ok", "skipped"}
    assert [one.id for one in findings if one.state == "skipped"] == ["cluster.many-cards"]
    assert exit_code(findings) == 0


@pytest.mark.parametrize(("check", "changes", "state", "words"), CASES)
def test_a_check(check: str, changes: dict[str, Any], state: str, words: str) -> None:
    finding = found(check, changes)
    assert (finding.state, words in finding.seen) == (state, True), finding


def test_each_check_is_in_the_table_of_cases() -> None:
    wrong = {check for check, _, state, _ in CASES if state in ("wrong", "warning")}
    assert wrong == {check.id for check in CLUSTER_CHECKS}


@pytest.mark.parametrize(("check", "changes", "state", "words"), CASES)
def test_what_is_wrong_has_something_to_do(
    check: str, changes: dict[str, Any], state: str, words: str
) -> None:
    for finding in diagnose_cluster(replace(CLUSTER, **changes)):
        assert finding.seen
        assert not finding.seen.endswith(".")
        if finding.state in ("wrong", "warning"):
            assert len(finding.advice) > len("do")
            assert not finding.advice.endswith(".")


GIVEN = ("names", "now_s", "metrics_restricted")
OBSERVED = [one.name for one in fields(CLUSTER) if one.name not in GIVEN]


@pytest.mark.parametrize("what", OBSERVED)
def test_one_that_is_not_seen_leaves_the_others_alone(what: str) -> None:
    before = diagnose_cluster(CLUSTER)
    hidden: dict[str, Any] = {what: Unseen("no right to look")}
    after = diagnose_cluster(replace(CLUSTER, **hidden))
    changed = [now for now, then in zip(after, before, strict=True) if now != then]
    assert not any(one.state == "wrong" for one in changed)
    assert all(one.seen == "no right to look" for one in changed if one.state == "unknown")
    assert exit_code(after) == (3 if any(one.state == "unknown" for one in changed) else 0)


def test_nothing_seen_is_nothing_wrong() -> None:
    hidden: dict[str, Any] = dict.fromkeys(OBSERVED, Unseen("away"))
    findings = diagnose_cluster(replace(CLUSTER, **hidden))
    assert {one.state for one in findings} == {"unknown"}
    assert exit_code(findings) == 3


def test_without_dras_api_nothing_of_it_is_looked_at() -> None:
    hidden: dict[str, Any] = dict.fromkeys(("slices", "classes", "claims"), Unseen("404"))
    hidden["canary"] = Canary(refusal="404")
    without = replace(CLUSTER, version=OLD, resource_api=False, **hidden)
    for findings in (diagnose_cluster(without), diagnose_preinstall(without)):
        assert exit_code(findings) == 1
        assert not [one for one in findings if one.state == "unknown"]
        assert [one.id for one in findings if one.state == "wrong"] == [
            "cluster.version",
            "cluster.resource-api",
        ]
    empty = replace(without, pods=(), webhooks=Webhooks(mutating=(), validating=()))
    (parts,) = (one for one in diagnose_cluster(empty) if one.id == "parts.registration")
    assert (parts.state, parts.seen) == ("skipped", "casaba is not installed")


def test_where_nothing_of_casaba_is_only_that_is_wrong() -> None:
    findings = diagnose_cluster(replace(CLUSTER, **NOTHING))
    assert [one.id for one in findings if one.state == "wrong"] == ["parts.releases"]
    assert "helm install" in found("parts.releases", NOTHING).advice


def test_how_the_gate_is_turned_on_depends_on_the_version() -> None:
    off = {"canary": Canary(dropped=("spec.x",))}
    before = found("cluster.gate", off | {"version": V134}).advice
    assert "set --feature-gates=DRAConsumableCapacity=true" in before
    assert "take DRAConsumableCapacity=false out" in found("cluster.gate", off).advice


def test_the_advice_names_every_label_that_a_node_needs() -> None:
    assert found("nodes.labels", SITE).advice == "kubectl label node NODE gpu=on site=x"
    plugin = found(
        "nodes.conflicts", {**SITE, "nodes": ({**AT_SITE, "status": {"capacity": PLUGIN}},)}
    )
    assert "label it gpu=on site=x again" in plugin.advice


def test_only_where_hami_was_seen_it_is_told_how_to_forget_it() -> None:
    command = "kubectl annotate node NODE hami.io/node-nvidia-register- hami.io/node-handshake-"
    assert found("nodes.conflicts", hami(silent_s=60)).advice.endswith(command)
    plugin = found("nodes.conflicts", {"nodes": (node(capacity=PLUGIN),)})
    assert "annotate" not in plugin.advice


def test_who_does_not_answer_may_be_behind_a_policy_and_who_refuses_is_not() -> None:
    silent = found("parts.guards", {"agents": SILENT}).advice
    refused = found("parts.guards", {"agents": {"edge-1": Unseen("no right")}}).advice
    assert "networkPolicy.metricsFrom" in silent
    assert "pods/proxy" not in silent
    assert "pods/proxy" in refused
    assert "networkPolicy" not in refused


def test_a_legal_release_is_well() -> None:
    """Nothing that the chart's values allow makes a healthy cluster look sick."""
    for changes in (
        {"agents": SILENT, "metrics_restricted": True},
        {"webhooks": replace(healthy.webhooks(), mutating=())} | tried(),
        {"webhooks": healthy.webhooks(left_alone=("default",))} | tried(),
        {**SITE, "nodes": (AT_SITE, ELSEWHERE)},
        {**RENAMED, "trial": Trial(pod=healthy.CONVERTED)},
        hami(silent_s=3600),
        stands_for("nvidia.com/gpu-h100"),
    ):
        assert exit_code(diagnose_cluster(replace(CLUSTER, **changes))) == 0, changes


def test_each_problem_of_an_agent_has_a_line() -> None:
    events = (event("DriverMissing"), event("SliceFieldsDropped"))
    told = found("parts.problems", {"events": events, "agents": {}}).seen
    assert [line.split(":")[1].strip() for line in told.splitlines()] == [
        "DriverMissing",
        "SliceFieldsDropped",
    ]


def test_an_expired_certificate_is_told_apart_from_a_firewall() -> None:
    expired = found("webhook.trial", {"trial": Trial(refusal=NOT_CALLED + "x509: has expired")})
    closed = found("webhook.trial", {"trial": Trial(refusal=NOT_CALLED + "connection refused")})
    assert "expired" in expired.advice
    assert "NetworkPolicy" in closed.advice


def before_install(**changes: Any) -> tuple[Finding, ...]:
    known: dict[str, Any] = {
        what: getattr(CLUSTER, what) for what in ("version", "resource_api", "canary", "nodes")
    }
    hidden: dict[str, Any] = dict.fromkeys(OBSERVED, Unseen("not asked"))
    seen = {**hidden, **known, "classes": (), "slices": (), **changes}
    return diagnose_preinstall(replace(CLUSTER, **seen))


def test_before_an_installation_only_prerequisites_count() -> None:
    assert exit_code(before_install()) == 0
    assert len(before_install()) == len(PREINSTALL_CHECKS)
    assert exit_code(before_install(nodes=())) == 0, "only a warning"
    for changes in (
        {"nodes": (node(capacity=PLUGIN),)},
        {"version": OLD},
        {"canary": Canary(dropped=("spec.x",))},
        {"slices": CLUSTER.slices, "classes": CLUSTER.classes},
    ):
        found = before_install(**changes)
        assert exit_code(found) == 1
        assert all(one.advice for one in found if one.state == "wrong")


def test_an_upgrade_finds_its_own_slices() -> None:
    ours = device_class()
    ours["metadata"]["labels"] = {"app.kubernetes.io/name": "casaba"}
    assert exit_code(before_install(slices=CLUSTER.slices, classes=(ours,))) == 0


def test_the_list_of_nodes_ends_somewhere() -> None:
    nodes = tuple(node(f"edge-{number}", capacity=PLUGIN) for number in range(300))
    seen = found("nodes.conflicts", {"nodes": nodes}).seen
    assert "and 290 more" in seen


RELEASE = HelmRelease(name="gpus", revision="3", namespace="tools")


def test_an_uninstall_waits_for_pods_with_cards() -> None:
    held = replace(CLUSTER, claims=(healthy.claim(),))
    (refused,) = diagnose_uninstall(held, RELEASE, by_force=False)
    assert refused.state == "wrong"
    assert "1 pod holds cards: team/tenant" in refused.seen
    assert "or keep casaba: helm rollback gpus 3 -n tools; or go on by force" in refused.advice
    assert (
        "helm rollback gpus 3 -n tools, then helm upgrade gpus CHART -n tools --reuse-values "
        "--set uninstall.force=true, then uninstall" in refused.advice
    )
    (forced,) = diagnose_uninstall(held, RELEASE, by_force=True)
    assert forced.state == "warning"
    nobody: dict[str, Any] = {"metadata": {}}
    for claim in (healthy.claim(reservedFor=[]), healthy.claim(allocation={}), nobody):
        (free,) = diagnose_uninstall(replace(CLUSTER, claims=(claim,)), RELEASE, by_force=False)
        assert free.state == "ok"


def test_other_drivers_claims_do_not_matter() -> None:
    results = [{"driver": "gpu.example"}]
    other = healthy.claim(allocation={"devices": {"results": results}})
    (found,) = diagnose_uninstall(replace(CLUSTER, claims=(other,)), RELEASE, by_force=False)
    assert found.state == "ok"


KEYS = st.sampled_from(
    [
        *("metadata", "name", "namespace", "labels", "annotations", "spec", "status", "gpu"),
        *("capacity", "nodeInfo", "devices", "selectors", "cel", "expression", "webhooks"),
        *("clientConfig", "caBundle", "renewTime", "conditions", "containers", "command", "reason"),
        *("allocation", "results", "reservedFor", "lastTimestamp", "involvedObject", "resources"),
        *("limits", "gitVersion", "app.kubernetes.io/component", "kubeletVersion", "nodeName"),
        *("extendedResourceName", "hami.io/node-nvidia-register", "hami.io/node-handshake"),
        *("managedFields", "namespaceSelector", "matchExpressions", "matchLabels", "operator"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
WORDS = st.sampled_from(
    ["on", "Ready", "True", "edge-1", "hami-dra-webhook", DRIVER_NAME, "DriverMissing", "v1.34.1"]
)
ODD = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.lists(st.dictionaries(KEYS, ODD, max_size=5), max_size=3).map(tuple)


@given(st.data())
def test_odd_objects_are_never_a_crash(data: st.DataObject) -> None:
    lists = ("schedulers", "nodes", "pods", "slices", "claims", "classes", "node_leases", "events")
    changes: dict[str, Any] = {what: data.draw(OBJECTS, label=what) for what in lists}
    changes["webhooks"] = Webhooks(mutating=data.draw(OBJECTS), validating=data.draw(OBJECTS))
    changes["version"] = data.draw(st.dictionaries(KEYS, ODD, max_size=3))
    changes["lease"] = data.draw(st.none() | st.dictionaries(KEYS, ODD, max_size=3))
    changes["trial"] = Trial(pod=data.draw(st.dictionaries(KEYS, ODD, max_size=3)))
    spoiled = replace(CLUSTER, **changes)
    assert len(diagnose_cluster(spoiled)) == len(CLUSTER_CHECKS)
    assert len(diagnose_uninstall(spoiled, RELEASE, by_force=False)) == 1
