"""Claims made for pods from templates."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from casaba.kube import ObjectKey
from casaba.simulation.controllers.claim_making import (
    MissingClaim,
    generated_name,
    made_before,
    missing_claims,
    new_claim,
    status_patch,
)
from casaba.simulation.workloads.claim_names import POD_CLAIM_ANNOTATION
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import ResourceClaim

TEMPLATE = {
    "metadata": {"name": "shares"},
    "spec": {
        "metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}},
        "spec": {"devices": {"requests": [{"name": "gpu", "unknown": {"kept": True}}]}},
    },
}


def pod(**told: str) -> Pod:
    entries = [{"name": "x", "resourceClaimTemplateName": "shares"}, {"name": "y"}]
    entries[1]["resourceClaimName"] = "by-hand"
    statuses = [{"name": name, "resourceClaimName": claim} for name, claim in told.items()]
    body = {
        "metadata": {"name": "p", "namespace": "default", "uid": "1"},
        "spec": {"resourceClaims": entries},
        "status": {"resourceClaimStatuses": statuses},
    }
    return msgspec.convert(body, Pod)


def stored(name: str, made: dict[str, Any]) -> dict[ObjectKey, ResourceClaim]:
    made = {**made, "metadata": {**made["metadata"], "name": name, "namespace": "default"}}
    return {ObjectKey("default", name): msgspec.convert(made, ResourceClaim)}


def test_only_templates_make_claims() -> None:
    assert missing_claims(pod(), {}, {}) == (MissingClaim(entry="x", template="shares"),)


def test_a_claim_is_made_once() -> None:
    made = stored("p-x-1", new_claim(pod(), "x", TEMPLATE))
    assert missing_claims(pod(), made, {"x": "p-x-1"}) == ()
    assert missing_claims(pod(x="p-x-1"), made, {}) == ()
    assert made_before(pod(), made.values()) == {"x": "p-x-1"}


def test_a_claim_that_was_deleted_or_is_another_pods_is_made_anew() -> None:
    assert missing_claims(pod(x="p-x-1"), {}, {})
    body = new_claim(pod(), "x", TEMPLATE)
    body["metadata"]["ownerReferences"][0]["uid"] = "2"
    assert missing_claims(pod(x="p-x-1"), stored("p-x-1", body), {})


def test_a_made_claim_has_all_that_the_template_says() -> None:
    made = new_claim(pod(), "x", TEMPLATE)
    assert made["spec"] == TEMPLATE["spec"]["spec"]  # type: ignore[index]
    assert made["metadata"]["labels"] == {"a": "1"}
    assert made["metadata"]["annotations"] == {"b": "2", POD_CLAIM_ANNOTATION: "x"}
    assert made["metadata"]["generateName"] == "p-x-"


def test_the_status_keeps_the_names_that_it_tells_already() -> None:
    patch = status_patch(pod(z="p-z-1"), {"x": "p-x-1"})
    assert patch["status"]["resourceClaimStatuses"] == [
        {"name": "x", "resourceClaimName": "p-x-1"},
        {"name": "z", "resourceClaimName": "p-z-1"},
    ]


@given(pod=st.text("ab", min_size=1, max_size=253), entry=st.text("cd", min_size=1, max_size=63))
def test_generated_names_leave_room_for_what_the_server_adds(pod: str, entry: str) -> None:
    name = generated_name(pod, entry)
    assert len(name) <= 58
    assert name[0] in "ab"
    assert "-" in name
