"""With cert-manager, what the API server trusts fits what the webhook serves, also on renewals."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart.rendering import Object, rendered
from tests.chart.value_cases import MANAGED
from tests.cluster.issuing import Issuing
from tests.component.controllers.webhook_world import Pair, handshake

AUTHORITY, SERVING = "hami-dra-webhook-authority", "hami-dra-webhook-serving-cert"
OWN_ISSUER = 'certs.certManager.issuerRef={"name":"ca","kind":"ClusterIssuer"}'


@pytest.fixture
def issuing(tmp_path: Path) -> Issuing:
    """cert-manager with what the chart makes for it, and the serving certificate issued."""
    chart = rendered(MANAGED)

    def find(kind: str, holds: Callable[[Object], bool]) -> Object:
        (found,) = filter(holds, chart.of(kind))
        return found

    issuing = Issuing(tmp_path, find)
    issuing.issue(SERVING)
    return issuing


def served(issuing: Issuing) -> Pair:
    """What the webhook's pods serve: of the Secret that they mount."""
    (volume,) = rendered(MANAGED).one("Deployment", "hami-dra-webhook")["spec"]["template"]["spec"][
        "volumes"
    ]
    held = issuing.secrets[volume["secret"]["secretName"]]["data"]
    return Pair(
        certificate=base64.b64decode(held["tls.crt"]), key=base64.b64decode(held["tls.key"])
    )


def trusted(issuing: Issuing) -> bytes:
    """What cainjector gives the API server: of the Certificate that the webhooks name."""
    (configuration,) = rendered(MANAGED).of("MutatingWebhookConfiguration")
    named = configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    certificate = rendered(MANAGED).one("Certificate", named.partition("/")[2])
    secret = issuing.secrets[certificate["spec"]["secretName"]]
    return base64.b64decode(secret["data"]["ca.crt"])


def test_the_webhook_is_trusted(issuing: Issuing) -> None:
    handshake(trusted(issuing), served(issuing))


@pytest.mark.parametrize(
    "renewed", [(SERVING,), (AUTHORITY,), (AUTHORITY, SERVING), (SERVING, AUTHORITY, SERVING)]
)
def test_a_renewal_is_trusted_by_who_knows_the_one_before(
    issuing: Issuing, renewed: tuple[str, ...]
) -> None:
    """Bundle and certificate reach API servers and pods one by one, in any order."""
    bundles, pairs = [trusted(issuing)], [served(issuing)]
    for name in renewed:
        issuing.issue(name)
        bundles.append(trusted(issuing))
        pairs.append(served(issuing))
    assert len({pair.certificate for pair in pairs}) == 1 + renewed.count(SERVING)
    for bundle in bundles:
        for pair in pairs:
            handshake(bundle, pair)


def test_an_issuer_of_ones_own_needs_no_authority_of_ours() -> None:
    chart = rendered(MANAGED, OWN_ISSUER)
    assert [one["metadata"]["name"] for one in chart.of("Certificate", "Issuer")] == [SERVING]
    assert chart.one("Certificate", SERVING)["spec"]["issuerRef"] == {
        "name": "ca",
        "kind": "ClusterIssuer",
    }
