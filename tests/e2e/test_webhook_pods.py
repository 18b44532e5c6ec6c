"""Classic pods at the real API server, by kubectl and by workloads, on their whole way: converted,
applied again, changed, refused by others, and gone with all that was made for them.

All are held back from the scheduler.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from casaba.policy.convert import wants_conversion
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import copied
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.component.webhook.certificates import Authority
from tests.e2e.plain_api import JSON, MERGE, STRATEGIC_MERGE, Reply
from tests.e2e.webhook_site import WebhookSite, webhook_site
from tests.e2e.workloads import DRIVER
from tests.unit.policy.convert.cases import Case
from tests.unit.policy.convert.pods import PLAIN, gpu, pod, uses
from tests.unit.policy.convert.test_any_pod import good_pods, spoilt_pods

Object = dict[str, Any]

PODS_NAMESPACE = "webhook-pods"
SETTINGS = ConversionSettings()
WITHIN_S = 60.0
PERIOD_S = 3.0
HELD: Object = {"schedulingGates": [{"name": "casaba.dev/held"}]}
HALF = gpu(1, mem=10240, cores=50)
DENIED = {"denied": "yes"}
"""Label of pods that the admission policy of the test does not want."""


@pytest.fixture(scope="module")
def site(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """A webhook that is asked, and sees the bed's own cards."""
    with webhook_site(bed, tmp_path_factory.mktemp("webhook"), PODS_NAMESPACE) as site:
        site.run_webhook(SETTINGS)
        site.wait_until_asked(
            pod(main=gpu(1, percent=50)), lambda it: bool(it.status == 201 and uses(it.body))
        )
        yield site


def held_pod(name: str, container: Object = HALF, **fields: Any) -> Object:
    """A pod that waits for ever."""
    made = pod(main=container, **fields)
    made["spec"] |= HELD
    made["metadata"]["name"] = name
    return made


def workload(kind: str, name: str, container: Object = HALF, **spec: Any) -> Object:
    """A Deployment or its like, whose pods are held back."""
    template = pod(labels={"app": name}, main=container)
    template["spec"] |= HELD
    del template["metadata"]["name"], template["apiVersion"], template["kind"]
    selector: Object = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template, **spec},
    }


def kubectl(
    site: WebhookSite, *arguments: str, content: Object | None = None
) -> subprocess.CompletedProcess[str]:
    """In the pods' namespace; fails or not."""
    stdin = None if content is None else json.dumps(content)
    return site.bed.kubectl(f"--namespace={PODS_NAMESPACE}", *arguments, stdin=stdin, check=False)


def applied(site: WebhookSite, content: Object, *flags: str) -> str:
    """What `kubectl apply` says."""
    done = kubectl(site, "apply", "-f", "-", *flags, content=content)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stored_pod(site: WebhookSite, name: str) -> Object:
    """A pod as it is; empty if there is none."""
    reply = site.api.call("GET", site.pods(name))
    return reply.body if reply.status == 200 else {}


def pods_of(site: WebhookSite, app: str) -> list[Object]:
    """The pods of a workload that are not going."""
    found = site.api.call("GET", f"{site.pods()}?labelSelector=app={app}").body["items"]
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def uids(pods: Sequence[Object]) -> set[str]:
    """Tell pods from others of the same names."""
    return {one["metadata"]["uid"] for one in pods}


def template_of(one: Object) -> str:
    """The template of its only claim."""
    (claim,) = one["spec"]["resourceClaims"]
    return str(claim["resourceClaimTemplateName"])


# -- Applied again and changed ---------------------------------------------------------------


def with_own_claim() -> Object:
    """One that asks for a card in both ways."""
    container = copied(HALF)
    container["resources"]["claims"] = [{"name": "own"}]
    own = [{"name": "own", "resourceClaimName": "mine"}]
    return held_pod("own-claim", container, spec={"resourceClaims": own})


@pytest.mark.parametrize("way", ["client", "server"])
@pytest.mark.parametrize(
    "manifest", [held_pod("classic"), with_own_claim()], ids=["classic", "own"]
)
def test_a_manifest_that_is_applied_again_changes_nothing(
    site: WebhookSite, manifest: Object, way: str
) -> None:
    name = f"{manifest['metadata']['name']}-{way}"
    manifest = {**manifest, "metadata": {"name": name}}
    flags = ["--server-side"] if way == "server" else []
    applied(site, manifest, *flags)
    first = stored_pod(site, name)
    assert uses(first) == {"main": "main"}
    applied(site, manifest, *flags)
    assert stored_pod(site, name)["spec"] == first["spec"]
    labelled = {**manifest, "metadata": {"name": name, "labels": {"again": "yes"}}}
    applied(site, labelled, *flags)
    again = stored_pod(site, name)
    assert again["spec"] == first["spec"]
    assert again["metadata"]["labels"] == {"again": "yes", "hami.io/dra": "true"}
    assert again["metadata"]["uid"] == first["metadata"]["uid"]


def test_amounts_of_a_pod_that_is_there_cannot_be_changed(site: WebhookSite) -> None:
    applied(site, held_pod("amounts"))
    larger = held_pod("amounts", gpu(1, mem=20480, cores=50))
    done = kubectl(site, "apply", "-f", "-", content=larger)
    assert done.returncode
    assert "20480 is asked for, but the pod was made with 10240" in done.stderr


def test_other_changes_of_a_pod_are_none_of_the_webhooks_business(site: WebhookSite) -> None:
    applied(site, held_pod("changed"))
    before = stored_pod(site, "changed")
    for arguments in (("label", "pod", "changed", "a=b"), ("annotate", "pod", "changed", "a=b")):
        assert kubectl(site, *arguments).returncode == 0
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "image:2"}]
    patch = ("--type=json", f"--patch={json.dumps(image)}")
    assert kubectl(site, "patch", "pod", "changed", *patch).returncode == 0
    after = stored_pod(site, "changed")
    assert after["spec"]["containers"][0]["image"] == "image:2"
    assert uses(after) == uses(before) == {"main": "main"}


@pytest.mark.parametrize("manifest", [held_pod("dry"), workload("Deployment", "dry")])
def test_a_dry_run_leaves_nothing(site: WebhookSite, manifest: Object) -> None:
    before = site.template_names()
    unseen = json.loads(json.dumps(manifest).replace("10240", "10241"))
    applied(site, unseen, "--dry-run=server")
    assert site.template_names() == before
    assert not stored_pod(site, "dry")


# -- Workloads -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet"])
def test_the_pods_of_a_workload_share_a_template(site: WebhookSite, kind: str) -> None:
    name = f"shared-{kind.lower()}"
    count = (
        {"parallelism": 2, "completions": 2}
        if kind == "Job"
        else {"replicas": 2, **({"podManagementPolicy": "Parallel"} if kind[0] == "S" else {})}
    )
    manifest = workload(kind, name, **count)
    if kind == "Job":
        manifest["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    applied(site, manifest)
    wait_until(f"{name} has pods", lambda: len(pods_of(site, name)) == 2, WITHIN_S)
    first = one, two = pods_of(site, name)
    assert uses(one) == uses(two) == {"main": "main"}
    assert template_of(one) == template_of(two)
    applied(site, manifest)
    assert uids(pods_of(site, name)) == uids(first)
    generation = ("get", kind, name, "--output=jsonpath={.metadata.generation}")
    assert kubectl(site, *generation).stdout == "1"


def test_a_pod_that_is_made_anew_under_its_name_gets_its_claim_again(site: WebhookSite) -> None:
    applied(site, workload("StatefulSet", "again", serviceName="again"))
    wait_until("again-0 is there", lambda: bool(stored_pod(site, "again-0")), WITHIN_S)
    first = stored_pod(site, "again-0")
    kubectl(site, "delete", "pod", "again-0", "--wait=false")

    def is_new() -> bool:
        found = stored_pod(site, "again-0")
        return bool(found) and found["metadata"]["uid"] != first["metadata"]["uid"]

    wait_until("again-0 is another", is_new, WITHIN_S)
    second = stored_pod(site, "again-0")
    assert uses(second) == {"main": "main"}
    assert template_of(second) == template_of(first)


# -- Refused by others -----------------------------------------------------------------------


@contextmanager
def policy(site: WebhookSite) -> Iterator[None]:
    """Somebody's admission policy, which the API server asks after all webhooks that change."""
    denied = "object.metadata.?labels['denied'].orValue('no') == 'no'"
    group, named = "admissionregistration.k8s.io/v1", {"name": "webhook-pods-test"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {
            "resourceRules": [rule | {"resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PODS_NAMESPACE}},
        },
        "validations": [{"expression": denied, "message": "nobody wants it"}],
    }
    binding = {"policyName": named["name"], "validationActions": ["Deny"]}
    items = [
        {"apiVersion": group, "kind": f"ValidatingAdmissionPolicy{kind}", "metadata": named} | it
        for kind, it in (("", {"spec": spec}), ("Binding", {"spec": binding}))
    ]
    objects = {"apiVersion": "v1", "kind": "List", "items": items}
    kubectl(site, "apply", "-f", "-", content=objects)
    try:
        unwanted = held_pod("unwanted", PLAIN, labels=DENIED)
        site.wait_until_asked(unwanted, lambda it: it.status == 422)
        yield
    finally:
        kubectl(site, "delete", "-f", "-", "--ignore-not-found", content=objects)


@contextmanager
def quota(site: WebhookSite, **hard: str) -> Iterator[None]:
    """A quota that counts."""
    path = f"/api/v1/namespaces/{PODS_NAMESPACE}/resourcequotas"
    limits = {name.replace("_", "/"): it for name, it in hard.items()}
    made = site.api.call("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": limits}})
    assert made.status == 201, made
    try:
        wait_until(
            "the quota counts",
            lambda: "hard" in site.api.call("GET", f"{path}/q").body.get("status", {}),
            WITHIN_S,
        )
        yield
    finally:
        site.api.call("DELETE", f"{path}/q")


def test_a_namespace_with_too_many_templates_hears_it_at_the_pod(site: WebhookSite) -> None:
    with quota(site, **{"count_resourceclaimtemplates.resource.k8s.io": "0"}):
        reply = site.create_pod(held_pod("over-quota", gpu(1, mem=777)))
    assert reply.status == 403
    assert "the pod's ResourceClaimTemplate can't be made: " in reply.message
    assert "exceeded quota: q" in reply.message


def test_a_namespace_with_too_many_claims_hears_it_at_the_pod(site: WebhookSite) -> None:
    with quota(site, **{"count_resourceclaims.resource.k8s.io": "0"}):
        assert site.create_pod(held_pod("claimless", gpu(1, mem=778))).status == 201
        wait_until("the pod tells of the quota", lambda: _tells_of_quota(site), WITHIN_S)


def _tells_of_quota(site: WebhookSite) -> bool:
    selector = "fieldSelector=involvedObject.name=claimless,reason=FailedResourceClaimCreation"
    path = f"/api/v1/namespaces/{PODS_NAMESPACE}/events?{selector}"
    return any(
        "exceeded quota: q" in one["message"] for one in site.api.call("GET", path).body["items"]
    )


# -- Claims of people's own -----------------------------------------------------------------


def one_card(amounts: Object, **devices: Any) -> Object:
    """A claim's spec of one request."""
    exactly = {"deviceClassName": DRIVER, "capacity": {"requests": amounts}}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}], **devices}}


@pytest.mark.parametrize(
    ("spec", "refusal", "warning"),
    [
        (one_card({"cores": 50, "memory": "10Gi"}), "", ""),
        (one_card({"cores": 50, "memory": "900Gi"}), "", "900Gi is more than any card has"),
        (
            one_card(
                {"cores": 50, "memory": "1Gi"}, constraints=[{"matchAttribute": f"{DRIVER}/uid"}]
            ),
            "constraints[0].matchAttribute: no card has the attribute",
            "",
        ),
    ],
    ids=["good", "larger-than-all", "impossible"],
)
@pytest.mark.parametrize("kind", ["resourceclaims", "resourceclaimtemplates"])
def test_claims_are_judged_by_the_webhook_too(
    site: WebhookSite, kind: str, spec: Object, refusal: str, warning: str
) -> None:
    path = site.templates().replace("resourceclaimtemplates", kind)
    body = {"spec": spec} if kind == "resourceclaims" else {"spec": {"spec": spec}}
    body = {"metadata": {"name": "own"}, **body}
    reply = site.api.call("POST", f"{path}?dryRun=All", body)
    assert reply.status == (422 if refusal else 201), reply
    assert refusal in reply.message
    assert bool(warning) == bool(reply.warnings)
    assert warning in " ".join(reply.warnings)


# -- Whatever comes --------------------------------------------------------------------------


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
@given(good_pods())
def test_any_good_pod_is_stored(
    site: WebhookSite, good: tuple[Object, dict[str, dict[str, Any]]]
) -> None:
    document, wanted = good
    reply = site.create_pod(document, dry_run=True)
    check_answer(reply)
    assert reply.status == 201, reply
    assert set(uses(reply.body)) == set(wanted)


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


# -- Nothing is left -------------------------------------------------------------------------


def test_what_nobody_uses_is_gone_after_the_period(site: WebhookSite) -> None:
    """Of pods that were refused, were gone or never came to be; what is in use stays."""
    kept = site.create_pod(held_pod("kept", gpu(1, mem=100)))
    before = site.template_names()
    assert site.create_pod(held_pod("wrong", gpu(1, mem=101, cores=101))).status == 422
    assert site.template_names() == before
    with policy(site):
        assert site.create_pod(held_pod("late", gpu(1, mem=102), labels=DENIED)).status == 422
    invalid = held_pod("invalid", gpu(1, mem=103, terminationMessagePolicy="Never"))
    assert site.create_pod(invalid).status == 422
    twice = held_pod("kept", gpu(1, mem=104))
    assert site.create_pod(twice).status == 409
    job = workload("Job", "short", gpu(1, mem=105))
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    applied(site, job)
    wait_until("the Job has a pod", lambda: bool(pods_of(site, "short")), WITHIN_S)
    assert len(site.template_names() - before) == 4
    kubectl(site, "delete", "job,deployment,statefulset", "--all")
    kubectl(site, "delete", "pod", "--field-selector=metadata.name!=kept", "--wait=false")
    flags = (f"--collect-after={PERIOD_S}", "--collect-settle=1")
    with site.controller(*flags) as controller:
        wait_until(
            "only what is in use is left",
            lambda: site.template_names() == {template_of(kept.body)} and claims(site) == {"kept"},
            WITHIN_S,
            explain=lambda: f"{site.template_names()} {claims(site)}",
        )
        assert len(controller.events("template.deleted")) >= 4
        assert not controller.events("template.not_deleted")
    assert uses(stored_pod(site, "kept")) == {"main": "main"}


def claims(site: WebhookSite) -> set[str]:
    """The owners of all claims of the namespace."""
    path = site.templates().replace("resourceclaimtemplates", "resourceclaims")
    found = site.api.call("GET", path).body["items"]
    return {owner["name"] for one in found for owner in one["metadata"]["ownerReferences"]}
