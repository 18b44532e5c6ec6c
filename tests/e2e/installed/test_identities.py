"""What whoever takes over a part of the release can do with its token, and what not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.chart.rendering import NAMESPACE, Object, rendered
from tests.chart.rights import Grant, grants
from tests.cluster.bed import Bed
from tests.e2e.installed.objects import AUTHORITY, SERVING, slice_of
from tests.e2e.installed.tokens import Holder, token_of_account, token_of_pod
from tests.e2e.workloads import DRIVER, claim, classic_pod

pytestmark = pytest.mark.timeout(400)

OWN, FOREIGN = "edge-1", "edge-2"
RESOURCE = "/apis/resource.k8s.io/v1"
SLICES = f"{RESOURCE}/resourceslices"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"
OUR_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VICTIM, CLAIM = "somebodys-pod", "somebodys-claim"
LABEL = {"metadata": {"labels": {"a": "b"}}}
ACCOUNTS = {
    "agent": "hami-dra-driver-service-account",
    "webhook": "hami-dra-webhook",
    "controller": "hami-dra-monitor",
    "doctor": "hami-dra-doctor",
    "uninstall": "hami-dra-uninstall",
    "certificates": "hami-dra-certificates",
}
COMPONENTS = {"agent": "node-agent", "webhook": "webhook", "controller": "controller"}
"""Those that run all the time; the others are hooks, and gone when they are done."""


class Try(NamedTuple):
    """A call, and for a refusal by an admission policy what it says."""

    method: str
    path: str
    body: Any = None
    said: str = "cannot "


@pytest.fixture(scope="module")
def hooks(release: Bed) -> Iterator[None]:
    """The hooks' accounts with their rights, as the chart makes them for a moment."""
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    made = [one for one in rendered().of(*kinds) if is_hook(one)]
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    release.kubectl("apply", "-f", "-", stdin=stdin)
    yield
    release.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=stdin)


def is_hook(made: Object) -> bool:
    return "helm.sh/hook" in made["metadata"].get("annotations", {})


@pytest.fixture(scope="module")
def victims(release: Bed) -> Iterator[None]:
    """A pod and a claim that are nobody's business."""
    pod = classic_pod(VICTIM)
    made = {"apiVersion": "v1", "kind": "List", "items": [pod, claim(CLAIM, ("gpu", "1Gi", 1))]}
    release.kubectl("create", "-f", "-", stdin=json.dumps(made))
    yield
    release.kubectl("delete", "-f", "-", "--grace-period=1", stdin=json.dumps(made))


@pytest.fixture(scope="module")
def holders(release: Bed, hooks: None, victims: None) -> dict[str, Holder]:
    """Who has whose token."""
    running = {
        who: token_of_pod(release, component, OWN if who == "agent" else None)
        for who, component in COMPONENTS.items()
    }
    of_hooks = ACCOUNTS.keys() - COMPONENTS.keys()
    return running | {who: token_of_account(release, ACCOUNTS[who]) for who in of_hooks}


# -- For everybody ---------------------------------------------------------------------------

UNTOUCHED = (
    # Pods, and whatever would run in them or as them.
    Try("PATCH", f"{PODS}/{VICTIM}", LABEL),
    Try("PUT", f"{PODS}/{VICTIM}", classic_pod(VICTIM)),
    Try("DELETE", f"{PODS}/{VICTIM}"),
    Try("DELETE", PODS),
    Try("PATCH", f"{PODS}/{VICTIM}/ephemeralcontainers", LABEL),
    Try("PATCH", f"{PODS}/{VICTIM}/status", LABEL),
    Try("POST", f"{PODS}/{VICTIM}/exec?command=id&stdout=true"),
    Try("GET", f"{PODS}/{VICTIM}/exec?command=id&stdout=true"),
    Try("POST", f"{PODS}/{VICTIM}/attach?stdout=true"),
    Try("POST", f"{PODS}/{VICTIM}/portforward?ports=80"),
    Try("POST", f"{PODS}/{VICTIM}/eviction", {"metadata": {"name": VICTIM}}),
    Try("POST", f"{PODS}/{VICTIM}/binding", {"target": {"name": OWN}}),
    Try("POST", OUR_PODS, classic_pod("intruder")),
    Try("POST", "/api/v1/namespaces/kube-system/pods", classic_pod("intruder")),
    Try("GET", f"{PODS}/{VICTIM}/log"),
    Try("GET", f"{PODS}/{VICTIM}/proxy/"),
    # What tokens and passwords are in.
    Try("GET", "/api/v1/secrets"),
    Try("GET", SECRETS),
    Try("GET", f"{SECRETS}/sh.helm.release.v1.casaba.v1"),
    Try("GET", "/api/v1/namespaces/default/secrets"),
    Try("GET", "/api/v1/configmaps"),
    Try("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNTS['agent']}/token", {}),
    # Claims and their status.
    Try("PATCH", f"{CLAIMS}/{CLAIM}", LABEL),
    Try("PUT", f"{CLAIMS}/{CLAIM}", claim(CLAIM)),
    Try("PATCH", f"{CLAIMS}/{CLAIM}/status", {"status": {"allocation": None}}),
    Try("DELETE", f"{CLAIMS}/{CLAIM}"),
    Try("POST", CLAIMS, claim("intruder", ("gpu", "1Gi", 1))),
    Try("DELETE", CLAIMS),
    # Nodes, and the cards of all of them at once.
    Try("PATCH", f"/api/v1/nodes/{OWN}", LABEL),
    Try("PATCH", f"/api/v1/nodes/{OWN}/status", LABEL),
    Try("DELETE", f"/api/v1/nodes/{FOREIGN}"),
    Try("GET", f"/api/v1/nodes/{FOREIGN}/proxy/pods"),
    Try("DELETE", SLICES),
    Try("PATCH", f"{RESOURCE}/deviceclasses/{DRIVER}", LABEL),
    # Rights.
    Try("PATCH", f"{RBAC}/clusterroles/{ACCOUNTS['webhook']}", {"rules": []}),
    Try("POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": "intruder"}}),
    Try("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {}),
    Try("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}),
    Try("PATCH", f"{WEBHOOKS}/somebodys", {"webhooks": []}),
    Try("DELETE", f"{WEBHOOKS}/hami-dra-webhook"),
    Try("GET", "/metrics"),
)


@pytest.mark.parametrize("who", ACCOUNTS)
def test_nobody_touches_what_is_none_of_theirs(holders: dict[str, Holder], who: str) -> None:
    assert not_refused(holders[who], UNTOUCHED) == []


def not_refused(holder: Holder, tries: tuple[Try, ...]) -> list[str]:
    """What was not refused as it should be, with the answer."""
    found = []
    for one in tries:
        answer = holder.call(one.method, one.path, one.body)
        if answer.code != 403 or one.said not in answer.said:
            found.append(f"{one.method} {one.path}: {answer.code} {answer.said}")
    return found


# -- For each ---------------------------------------------------------------------------------

ONLY_OTHERS: dict[str, tuple[Try, ...]] = {
    "agent": (
        Try("GET", PODS),
        Try("GET", f"{PODS}/{VICTIM}"),
        Try("POST", PODS, classic_pod("intruder")),
        Try("PATCH", f"{OUR_PODS}/any/status", LABEL),
        Try("GET", f"{SECRETS}/{SERVING}"),
        Try("GET", f"{SECRETS}/{AUTHORITY}"),
        Try("GET", CLAIMS),
        Try("GET", TEMPLATES),
        Try("POST", f"/api/v1/namespaces/{NAMESPACE}/events", {"metadata": {"name": "e"}}),
        Try("POST", "/api/v1/namespaces/kube-system/events", {"metadata": {"name": "e"}}),
        Try("GET", "/api/v1/namespaces/default/events"),
        Try("PATCH", f"{SETS}/hami-dra-driver-kubelet-plugin", LABEL),
        Try("GET", WEBHOOKS),
        Try("PATCH", f"{LEASES}/casaba-controller", LABEL),
    ),
    "webhook": (
        Try("GET", PODS),
        Try("POST", PODS, classic_pod("intruder")),
        Try("PATCH", f"{OUR_PODS}/any/status", LABEL),
        Try("GET", f"{SECRETS}/{SERVING}"),
        Try("GET", f"{SECRETS}/{AUTHORITY}"),
        Try("GET", CLAIMS),
        Try("DELETE", f"{TEMPLATES}/any"),
        Try("POST", SLICES, {}),
        Try("GET", "/api/v1/nodes"),
        Try("POST", f"/api/v1/namespaces/{NAMESPACE}/events", {"metadata": {"name": "e"}}),
        Try("GET", WEBHOOKS),
        Try("PATCH", f"{WEBHOOKS}/hami-dra-webhook", LABEL),
        Try("PATCH", f"{LEASES}/casaba-controller", LABEL),
    ),
    "controller": (
        Try("POST", PODS, classic_pod("intruder")),
        Try("PATCH", f"{OUR_PODS}/any", LABEL),
        Try("PATCH", f"{PODS}/{VICTIM}/status", LABEL),
        Try("POST", TEMPLATES, {}),
        Try("PATCH", f"{TEMPLATES}/any", LABEL),
        Try("POST", SLICES, {}),
        Try("DELETE", f"{SLICES}/any"),
        Try("GET", "/api/v1/nodes"),
        Try("DELETE", f"{SECRETS}/sh.helm.release.v1.casaba.v1"),
        Try("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}}),
        Try("POST", "/api/v1/namespaces/default/events", {"metadata": {"name": "e"}}),
        Try("PATCH", f"{LEASES}/somebodys", LABEL),
        Try("PATCH", f"{SETS}/hami-dra-driver-kubelet-plugin", LABEL),
    ),
    "doctor": (
        Try("GET", f"{SECRETS}/{SERVING}"),
        Try("GET", f"{PODS}/{VICTIM}"),
        Try("PATCH", f"{OUR_PODS}/any/status", LABEL),
        Try("POST", TEMPLATES, {}),
        Try("DELETE", f"{SLICES}/any"),
        Try("POST", f"{OUR_PODS}/any/proxy/"),
        Try("GET", "/api/v1/namespaces/kube-system/pods/any/proxy/"),
    ),
    "uninstall": (
        Try("GET", f"{SECRETS}/{SERVING}"),
        Try("GET", PODS),
        Try("DELETE", f"{OUR_PODS}/any"),
        Try("POST", PODS, classic_pod("intruder")),
        Try("POST", SLICES, {}),
        Try("PATCH", f"{SETS}/hami-dra-driver-kubelet-plugin", LABEL),
        Try("DELETE", f"{SETS}/somebodys"),
        Try("DELETE", f"{SECRETS}/sh.helm.release.v1.casaba.v1"),
    ),
    "certificates": (
        Try("GET", PODS),
        Try("GET", CLAIMS),
        Try("GET", "/api/v1/nodes"),
        Try("GET", SLICES),
        Try("GET", WEBHOOKS),
        Try("PATCH", f"{WEBHOOKS}/somebodys", LABEL),
        Try("DELETE", f"{SECRETS}/sh.helm.release.v1.casaba.v1"),
    ),
}


@pytest.mark.parametrize("who", ONLY_OTHERS)
def test_what_others_do_is_not_theirs(holders: dict[str, Holder], who: str) -> None:
    assert not_refused(holders[who], ONLY_OTHERS[who]) == []


def slice_for(node: str, **spec: Any) -> Object:
    """A slice without devices."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    body = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": []} | spec
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "intruder-"},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


def test_an_agent_keeps_to_the_slices_of_its_node(release: Bed, holders: dict[str, Holder]) -> None:
    own, foreign = (slice_of(release, node)["metadata"]["name"] for node in (OWN, FOREIGN))
    elsewhere = f"the agent of node {OWN} can't touch slices of node {FOREIGN}"
    wide = "the node agent owns slices with spec.nodeName only"
    refused = (
        Try("POST", SLICES, slice_for(FOREIGN), elsewhere),
        Try("PATCH", f"{SLICES}/{foreign}", LABEL, elsewhere),
        Try("PATCH", f"{SLICES}/{foreign}", {"spec": {"devices": []}}, elsewhere),
        Try("DELETE", f"{SLICES}/{foreign}", None, elsewhere),
        Try("POST", SLICES, slice_for(OWN, nodeName=None, allNodes=True), wide),
        Try("POST", SLICES, slice_for(OWN, driver="other.example.com"), "not of other.example"),
        Try("PUT", f"{SLICES}/{own}", slice_for(OWN)),
    )
    assert not_refused(holders["agent"], refused) == []


def test_an_agent_can_do_its_work(release: Bed, holders: dict[str, Holder]) -> None:
    own, agent = slice_of(release, OWN)["metadata"]["name"], holders["agent"]
    event = {
        "metadata": {"generateName": "trial-"},
        "involvedObject": {"kind": "Node", "name": OWN},
    }
    work = (
        Try("GET", f"/api/v1/nodes/{OWN}"),
        Try("GET", f"{CLAIMS}/{CLAIM}"),
        Try("GET", SLICES),
        Try("POST", SLICES, slice_for(OWN)),
        Try("PATCH", f"{SLICES}/{own}", LABEL),
        Try("DELETE", f"{SLICES}/{own}"),
        Try("POST", "/api/v1/namespaces/default/events", event),
    )
    answers = [(one, agent.call(one.method, one.path, one.body)) for one in work]
    assert [(one, answer) for one, answer in answers if answer.code not in (200, 201)] == []


def test_the_doctor_writes_by_dry_run_only(holders: dict[str, Holder]) -> None:
    for path, body in ((SLICES, slice_for(OWN)), (PODS, classic_pod("trial"))):
        assert holders["doctor"].call("POST", path, body).code == 201
        answer = holders["doctor"].call("POST", path, body, dry_run=False)
        assert (answer.code, "by dry run only" in answer.said) == (403, True)


# -- And nothing else --------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", [NAMESPACE, "default", "kube-system"])
@pytest.mark.parametrize("who", ACCOUNTS)
def test_nobody_has_rights_from_elsewhere(
    holders: dict[str, Holder], who: str, namespace: str
) -> None:
    account = f"{NAMESPACE}/{ACCOUNTS[who]}"
    given = {
        right(one)
        for one in grants(rendered())
        if one.account == account and one.namespace in ("", namespace)
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = holders[who].call("POST", path, {"spec": {"namespace": namespace}})
    has = {
        (group, resource, verb, name)
        for rule in answer.body["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }
    assert {one for one in has if not one[1].startswith("selfsubject")} == given


def right(grant: Grant) -> tuple[str, str, str, str]:
    return (grant.group, grant.resource, grant.verb, grant.name)
