"""Classic pods at the real API server, by kubectl and by workloads, on their whole way: converted,
applied again, changed, refused by others, and gone with all that was made for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import copied
from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE
from tests.cluster.waiting import wait_until
from tests.e2e.held_pods import (
    DENIED,
    HALF,
    WITHIN_S,
    Object,
    applied,
    held_pod,
    kubectl,
    pods_of,
    policy,
    quota,
    stored_pod,
    template_of,
    uids,
    workload,
)
from tests.e2e.webhook_site import WebhookSite, webhook_site
from tests.e2e.workloads import DRIVER
from tests.unit.policy.convert.pods import gpu, pod, uses

PODS_NAMESPACE = "webhook-pods"
PERIOD_S = 3.0


@pytest.fixture(scope="module")
def site(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """A webhook that is asked, and sees the bed's own cards."""
    with webhook_site(bed, tmp_path_factory.mktemp("webhook"), PODS_NAMESPACE) as site:
        site.run_webhook(ConversionSettings())
        site.wait_until_asked(
            pod(main=gpu(1, percent=50)), lambda it: bool(it.status == 201 and uses(it.body))
        )
        yield site


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


def test_an_init_container_has_the_shares_of_two_containers_on_one_card(
    site: WebhookSite,
) -> None:
    """It allocates as much as both have; the card is chosen by the type as HAMi registers it."""
    half = gpu(1, mem=10240, image=SAMPLE, command=["sleep", "1000000"])
    takes_all = ["alloc_until_refused", "--chunk-mib=512"]
    one = pod(
        init={"warm": gpu(1, mem=20480, image=SAMPLE, command=takes_all)},
        annotations={"nvidia.com/use-gputype": "NVIDIA-NVIDIA A10"},
        spec={"terminationGracePeriodSeconds": 1},
        a=half,
        b=half,
    )
    said = applied(site, one)
    try:
        wait_until(
            "the containers run after the init container",
            lambda: stored_pod(site, "pod").get("status", {}).get("phase") == "Running",
            WITHIN_S,
            explain=lambda: said + kubectl(site, "describe", "pod", "pod").stdout,
        )
        assert uses(stored_pod(site, "pod")) == {"a": "a", "b": "b", "warm": "a b"}
        taken = kubectl(site, "logs", "pod", "--container=warm").stdout.splitlines()
        assert taken[-2:] == [
            "20480 MiB allocated",
            "20992 MiB refused: CUDA_ERROR_OUT_OF_MEMORY",
        ]
    finally:
        kubectl(site, "delete", "pod", "pod", "--ignore-not-found")


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
