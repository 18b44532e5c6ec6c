"""What is broken, wrong or left over in the cluster is put right by the release itself, with the
rights that it has."""

from __future__ import annotations

import base64
import json

import pytest

from tests.chart.rendering import NAMESPACE
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.charts import CHART, RELEASE
from tests.e2e.installed.objects import (
    AUTHORITY,
    OLD_TEMPLATE,
    SERVING,
    Object,
    old_stamp,
    read,
    ruined_secrets,
    slice_of,
    template_of,
)
from tests.e2e.releases import PLACE, WAITING
from tests.e2e.workloads import SLICE_TIMEOUT_S, applied, classic_pod

pytestmark = pytest.mark.timeout(400)

NODE = "edge-2"
REPAIR_TIMEOUT_S = 60.0
COLLECTION_TIMEOUT_S = 240.0
"""Two minutes since the controller heard of a template, and half a minute between its looks."""


def secret(bed: Bed, name: str) -> Object:
    """A Secret of the release's namespace."""
    return read(bed, "secret", name, NAMESPACE)


def is_mended(bed: Bed, name: str) -> bool:
    """Whether a Secret that was ruined holds something else by now, and can be changed."""
    found = secret(bed, name)
    ruined = {one["metadata"]["name"]: one["data"] for one in ruined_secrets()}[name]
    has = found.get("data", {})
    return (
        has.keys() >= ruined.keys()
        and not found.get("immutable")
        and not (has.items() & ruined.items())
    )


def wait_until_mended(bed: Bed, *names: str) -> None:
    wait_until(
        f"{names} are made anew",
        lambda: all(is_mended(bed, name) for name in names),
        REPAIR_TIMEOUT_S,
        explain=lambda: (
            bed.kubectl(
                "logs",
                f"--namespace={NAMESPACE}",
                "--selector=app.kubernetes.io/component=controller",
            ).stdout
        ),
    )


def ruin(bed: Bed, name: str, *, immutable: bool) -> None:
    """Let a Secret hold nothing of use."""
    (ruined,) = (one for one in ruined_secrets() if one["metadata"]["name"] == name)
    change = {"data": ruined["data"]} | ({"immutable": True} if immutable else {})
    patch = f"--patch={json.dumps(change)}"
    bed.kubectl("patch", "secret", name, f"--namespace={NAMESPACE}", "--type=merge", patch)


def test_an_installation_makes_anew_what_an_old_one_left_ruined(release: Bed) -> None:
    assert all(is_mended(release, name) for name in (SERVING, AUTHORITY))


def test_certificates_that_are_ruined_later_are_made_anew(release: Bed) -> None:
    for name in (AUTHORITY, SERVING):
        ruin(release, name, immutable=True)
    wait_until_mended(release, AUTHORITY, SERVING)
    assert all(authority(release) in bundle for bundle in bundles(release))
    with applied(release, classic_pod("after-a-rotation", gpu="1", gpumem="256")):
        assert "resourceClaims" in read(release, "pod", "after-a-rotation")["spec"]


def authority(bed: Bed) -> bytes:
    """The certificate of who signs what the webhook serves, PEM."""
    return base64.b64decode(secret(bed, AUTHORITY)["data"]["ca.crt"])


def bundles(bed: Bed) -> list[bytes]:
    """Whom the API server trusts for each of our webhooks, PEM."""
    kinds = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
    configurations = [read(bed, kind, "hami-dra-webhook") for kind in kinds]
    return [
        base64.b64decode(entry["clientConfig"]["caBundle"])
        for configuration in configurations
        for entry in configuration["webhooks"]
    ]


def test_what_happens_again_is_counted_in_the_same_event(release: Bed) -> None:
    for _ in range(2):
        ruin(release, SERVING, immutable=False)
        wait_until_mended(release, SERVING)
    wait_until_counted(release, 2, NAMESPACE, "CertificateIssued", SERVING)


def wait_until_counted(bed: Bed, times: int, namespace: str, reason: str, about: str) -> None:
    """Until an event says how often something happened to an object."""
    selector = f"--field-selector=reason={reason},involvedObject.name={about}"
    wanted = ("get", "events", f"--namespace={namespace}", selector, "-o=json")

    def counts() -> list[int]:
        return [event["count"] for event in json.loads(bed.kubectl(*wanted).stdout)["items"]]

    what = f"an event {reason} of {about} counts {times}"
    wait_until(what, lambda: times in counts(), REPAIR_TIMEOUT_S)


def test_a_slice_too_many_of_a_node_is_deleted_by_its_agent(release: Bed) -> None:
    kept = slice_of(release, NODE)
    pool = kept["spec"]["pool"] | {"generation": kept["spec"]["pool"]["generation"] - 1}
    extra = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "one-too-many"},
        "spec": kept["spec"] | {"pool": pool},
    }
    release.kubectl("create", "-f", "-", stdin=json.dumps(extra))
    wait_until(
        "the slice that was there first is the only one again",
        lambda: slice_of(release, NODE).get("metadata", {}).get("uid") == kept["metadata"]["uid"],
        SLICE_TIMEOUT_S,
    )


def test_cards_are_withdrawn_while_a_device_plugin_offers_them(release: Bed) -> None:
    devices = slice_of(release, NODE)["spec"]["devices"]
    for times in (1, 2):
        offer_by_a_plugin(release, "8")
        wait_for_devices(release, [])
        offer_by_a_plugin(release, None)
        wait_for_devices(release, devices)
        wait_until_counted(release, times, "default", "CardsPublished", NODE)


def offer_by_a_plugin(bed: Bed, count: str | None) -> None:
    """Let the Node object tell cards of a device plugin, or none."""
    offered = {"nvidia.com/gpu": count}
    patch = json.dumps({"status": {"capacity": offered, "allocatable": offered}})
    bed.kubectl("patch", "node", NODE, "--subresource=status", "--type=merge", f"--patch={patch}")


def wait_for_devices(bed: Bed, devices: list[Object]) -> None:
    wait_until(
        f"{NODE} offers {len(devices)} cards",
        lambda: (slice_of(bed, NODE)["spec"].get("devices") or []) == devices,
        SLICE_TIMEOUT_S,
    )


def test_a_template_is_stamped_again_by_the_next_pod_that_uses_it(release: Bed) -> None:
    with applied(release, classic_pod("stamped", gpu="1", gpumem="300")):
        (entry,) = read(release, "pod", "stamped")["spec"]["resourceClaims"]
    template = entry["resourceClaimTemplateName"]
    release.kubectl("annotate", "resourceclaimtemplate", template, "--overwrite", old_stamp())
    wait_until(
        "the stamp is renewed",
        lambda: is_stamped_by_another_pod(release, template),
        REPAIR_TIMEOUT_S,
    )


def is_stamped_by_another_pod(bed: Bed, template: str) -> bool:
    """A webhook that has not heard of the old stamp yet leaves it."""
    with applied(bed, classic_pod("stamping", gpu="1", gpumem="300")):
        found = read(bed, "resourceclaimtemplate", template)
    key, old = old_stamp().split("=")
    return bool(found["metadata"]["annotations"][key] != old)


def test_a_template_of_somebody_else_is_not_taken_for_ours(release: Bed) -> None:
    pod = json.dumps(classic_pod("confused", gpu="1", gpumem="310"))
    trial = release.kubectl("create", "-f", "-", "--dry-run=server", "-o=json", stdin=pod).stdout
    (entry,) = json.loads(trial)["spec"]["resourceClaims"]
    name = entry["resourceClaimTemplateName"]
    release.kubectl("create", "-f", "-", stdin=json.dumps(template_of(name, labels={})))
    refused = release.kubectl("create", "-f", "-", stdin=pod, check=False)
    release.kubectl("delete", "resourceclaimtemplate", name)
    assert refused.returncode != 0
    assert f"ResourceClaimTemplate '{name}' that the webhook did not make" in refused.stderr


def test_a_template_that_nobody_uses_is_collected(release: Bed) -> None:
    wait_until(
        "the template is gone",
        lambda: read(release, "resourceclaimtemplate", OLD_TEMPLATE) == {},
        COLLECTION_TIMEOUT_S,
    )


def test_an_upgrade_that_finds_no_certificates_makes_them_and_lets_them_be_trusted(
    release: Bed,
) -> None:
    lost = authority(release)
    release.kubectl("scale", "deployment/hami-dra-monitor", "--replicas=0", PLACE)
    every = "--selector=app.kubernetes.io/component=controller"
    release.kubectl("wait", "pods", every, PLACE, "--for=delete", "--timeout=60s")
    release.kubectl("delete", "secret", AUTHORITY, SERVING, PLACE)
    release.helm("upgrade", RELEASE, str(CHART), PLACE, "--reuse-values", *WAITING)
    assert authority(release) != lost
    assert all(authority(release) in bundle for bundle in bundles(release))
    with applied(release, classic_pod("after-a-loss", gpu="1", gpumem="256")):
        assert "resourceClaims" in read(release, "pod", "after-a-loss")["spec"]
