"""Who makes the Secrets of the webhook's certificates, who reads them and who removes them."""

from __future__ import annotations

import pytest

from casaba.cli import controller
from tests.chart.rendering import rendered
from tests.chart.rights import grants
from tests.chart.test_commands import parsed, started
from tests.chart.test_objects import MATRIX

SECRETS_OF_THE_CONTROLLER = ["hami-dra-webhook-tls", "hami-dra-webhook-ca"]


def test_the_controller_is_told_who_waits_for_its_certificates() -> None:
    ((_, controller), (_, job)) = sorted(
        started(rendered(), "controller"),
        key=lambda found: "--certificates-once" in found[1]["args"],
    )
    told = parsed("controller", controller["args"][1:])
    once = parsed("controller", job["args"][1:])
    configurations = rendered().of("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    names = [configuration["metadata"]["name"] for configuration in configurations]
    for flags in (told, once):
        assert [flags.mutating_webhooks, flags.validating_webhooks] == names
    assert told.webhook_service == once.webhook_service == "hami-dra-webhook"
    assert told.serving_secret == once.serving_secret
    assert told.authority_secret == once.authority_secret
    assert once.certificates_once
    ((pod, _),) = started(rendered(), "webhook")
    assert pod["volumes"][0]["secret"]["secretName"] == told.serving_secret


@pytest.mark.parametrize("case", ["defaults", "cert-manager", "custom certificate"])
def test_what_others_made_is_removed_last(case: str) -> None:
    """Who makes the certificate now is not who made it before; an upgrade may have failed."""
    chart = rendered(*MATRIX[case])
    job = chart.one("Job", "hami-dra-uninstall-leftovers")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    named = [word.partition("=")[2] for word in container["args"] if word.startswith("--secret=")]
    assert named == [
        *SECRETS_OF_THE_CONTROLLER,
        "hami-dra-webhook-cert-manager-ca",
        "hami-dra-webhook-custom-tls",
    ]
    assert "--lease=casaba-controller" in container["args"]


def test_what_somebody_made_may_be_removed_by_name() -> None:
    """cert-manager's are those that its Certificates name, the controller's those of its flags."""
    chart = rendered(*MATRIX["cert-manager"])
    made = {one["spec"]["secretName"] for one in chart.of("Certificate")}
    ((_, container),) = (
        found
        for found in started(rendered(), "controller")
        if "--certificates-once" in found[1]["args"]
    )
    flags = parsed("controller", container["args"][1:])
    made |= {flags.serving_secret, flags.authority_secret}
    (deleted,) = (
        set(rule["resourceNames"])
        for rule in chart.one("Role", "hami-dra-uninstall")["rules"]
        if rule["resources"] == ["secrets"]
    )
    made |= {
        one["metadata"]["name"] for one in rendered(*MATRIX["custom certificate"]).of("Secret")
    }
    assert deleted == made


def test_no_secret_of_helm_has_the_name_of_one_that_somebody_else_makes() -> None:
    """Or Helm would not take it over, and on the way back delete what was just made."""
    ((pod, _),) = started(rendered(*MATRIX["custom certificate"]), "webhook")
    (secret,) = rendered(*MATRIX["custom certificate"]).of("Secret")
    assert pod["volumes"][0]["secret"]["secretName"] == secret["metadata"]["name"]
    assert secret["metadata"]["name"] not in SECRETS_OF_THE_CONTROLLER


def test_the_controller_has_the_custom_certificates_authority_trusted() -> None:
    """With rights for the Secret of these certificates alone, which it only reads."""
    chart = rendered(*MATRIX["custom certificate"])
    ((_, container),) = started(chart, "controller")
    trust = controller.settings_from(parsed("controller", container["args"][1:])).trust
    assert trust is not None
    configurations = chart.of("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    names = [configuration["metadata"]["name"] for configuration in configurations]
    assert [*trust.mutating, *trust.validating] == names
    (secret,) = chart.of("Secret")
    assert trust.secret == secret["metadata"]["name"]
    its_own = [one for one in grants(chart) if one.account.endswith("/hami-dra-monitor")]
    of_secrets = {(one.verb, one.name) for one in its_own if one.resource == "secrets"}
    assert of_secrets == {("get", trust.secret)}
    assert {one.verb for one in its_own if "webhook" in one.resource} == {"get", "patch"}
