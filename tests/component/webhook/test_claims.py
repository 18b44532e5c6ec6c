"""Claims and templates that people write, judged by the webhook for the API server."""

from itertools import product
from typing import Any

import pytest

from casaba.kube import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Invalid
from casaba.settings.host_paths import DRIVER_NAME
from tests.component.webhook.site import NAMESPACE, Object, Replica, Site, review_of

CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)


def spec(class_name: str = DRIVER_NAME, **capacity: str) -> Object:
    exactly: Object = {"deviceClassName": class_name}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


async def create(site: Site, claim_spec: Object, name: str = "one") -> Any:
    body = {"metadata": {"name": name}, "spec": claim_spec}
    return await site.client.create(CLAIMS, body, namespace=NAMESPACE)


async def test_a_good_claim_is_stored_as_it_is(site: Site, replica: Replica) -> None:
    stored = await create(site, spec(cores="50", memory="10Gi"))
    (request,) = stored["spec"]["devices"]["requests"]
    assert request["exactly"]["capacity"]["requests"] == {"cores": "50", "memory": "10Gi"}
    allowed = await replica.metric(
        "casaba_webhook_reviews_total", path="/validate", outcome="allowed"
    )
    assert allowed == 1


async def test_a_wrong_name_of_a_capacity_is_refused(site: Site, replica: Replica) -> None:
    with pytest.raises(Invalid, match=r"denied the request: spec\.devices.*gpumem") as error:
        await create(site, spec(gpumem="10Gi"))
    assert error.value.code == 422


async def test_a_template_is_judged_by_what_it_makes(site: Site, replica: Replica) -> None:
    body = {"metadata": {"name": "one"}, "spec": {"spec": spec(cores="500")}}
    with pytest.raises(Invalid, match=r"spec\.spec\.devices"):
        await site.client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=NAMESPACE)
    assert not site.templates()


async def test_claims_of_others_are_none_of_our_business(site: Site, replica: Replica) -> None:
    assert await create(site, spec("somebody.else", gpumem="1Gi"))


async def test_an_update_of_an_old_claim_passes(site: Site, replica: Replica) -> None:
    kind = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    claim = {"metadata": {"name": "old"}, "spec": spec(gpumem="10Gi")}
    response = await replica.post(
        review_of(claim, operation="UPDATE", oldObject=claim, kind=kind), "/validate"
    )
    assert response["allowed"]


async def test_what_is_no_claim_is_left_to_the_server(replica: Replica) -> None:
    claims: list[Object] = [{}, {"spec": None}, {"spec": []}, {"spec": {"spec": 1}}]
    kinds = ("ResourceClaim", "ResourceClaimTemplate")
    for claim, kind, version in product(claims, kinds, ("v1", "v1beta1", "v1beta2")):
        named = {"group": "resource.k8s.io", "version": version, "kind": kind}
        assert (await replica.post(review_of(claim, kind=named), "/validate"))["allowed"]


async def test_what_will_wait_is_warned_of(replica: Replica) -> None:
    kind = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    claim = {"metadata": {"name": "big"}, "spec": spec(memory="900Gi")}
    response = await replica.post(review_of(claim, kind=kind), "/validate")
    assert response["allowed"]
    assert response["warnings"]
