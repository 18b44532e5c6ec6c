"""What the roles of the chart grant, whatever its values are."""

from __future__ import annotations

import pytest

from tests.chart.rendering import CERT_MANAGER, NAMESPACE, rendered
from tests.chart.rights import grants

VALUES = (
    (),
    ("certs.certManager.enabled=true",),
    ("drivers.nvidia.containerDriver=false",),
    ("drivers.nvidia.enabled=false",),
    ("webhook.config.mutating.enabled=false", "webhook.config.validating.enabled=false"),
    ("preinstallCheck.enabled=false",),
    ("uninstall.force=true",),
    ("uninstall.cleanNodes=false",),
    ("monitor.enabled=false",),
)
POWERS = {"*", "escalate", "bind", "impersonate", "deletecollection"}
PODS_AND_TOKENS = {"pods/exec", "pods/ephemeralcontainers", "pods/attach", "serviceaccounts/token"}
OUR_SECRETS = {
    "hami-dra-webhook-tls",
    "hami-dra-webhook-ca",
    "hami-dra-webhook-cert-manager-ca",
    "hami-dra-webhook-custom-tls",
}


@pytest.mark.parametrize("values", VALUES, ids=" ".join)
def test_no_value_grants_more_than_the_defaults_do(values: tuple[str, ...]) -> None:
    """So what the defaults grant is all that has to be watched on a cluster."""
    options = [CERT_MANAGER] if any("certManager" in one for one in values) else []
    assert grants(rendered(*values, options=options)) - grants(rendered()) == set()


def test_nobody_has_more_than_names_and_verbs_of_a_kind() -> None:
    for one in grants(rendered()):
        assert not POWERS & {one.verb, one.resource, one.group}, one
        assert one.resource not in PODS_AND_TOKENS, one


def test_secrets_are_ours_alone() -> None:
    """What is yet to be created can't be named."""
    of_secrets = [one for one in grants(rendered()) if one.resource == "secrets"]
    assert of_secrets
    for one in of_secrets:
        assert one.namespace == NAMESPACE, one
        assert one.verb == "create" or one.name in OUR_SECRETS, one


def test_pods_are_written_in_two_ways_only() -> None:
    writes = {
        (one.account.split("/")[1], one.verb, one.resource, one.namespace)
        for one in grants(rendered())
        if one.resource.startswith("pods") and one.verb not in ("get", "list", "watch")
    }
    assert writes == {
        ("hami-dra-monitor", "patch", "pods/status", NAMESPACE),  # the leader's label
        ("hami-dra-doctor", "create", "pods", "default"),  # by dry run, as a policy has it
    }
