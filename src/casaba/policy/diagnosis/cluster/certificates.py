"""The webhook's certificates: whom the API server trusts, and who makes them; pure."""

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509

from casaba.policy.diagnosis.cluster.observations import (
    ClusterObservations,
    Webhooks,
)
from casaba.policy.diagnosis.cluster.webhook import ASK, our_hooks
from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    few,
    ok,
    skipped,
    warning,
    wrong,
)
from casaba.policy.diagnosis.objects import (
    Object,
    name,
    text,
)
from casaba.settings.doctor import Names

SOON_S = 7 * 24 * 3600.0
"""A certificate that ends so soon should have been renewed."""


def judge_authorities(seen: tuple[Webhooks, Names, float]) -> Verdict:
    """What the API server trusts when it calls the webhook."""
    webhooks, names, now_s = seen
    ours = tuple(our_hooks(webhooks, names))
    if not ours:
        return skipped("there is no webhook configuration")
    problems = [problem for hook in ours for problem in _bundle_problems(hook, now_s)]
    if problems:
        return wrong(
            few(dict.fromkeys(problems)),
            "with cert-manager look at its Certificate and cainjector; without it, at the log of "
            "the controller, which makes certificate and caBundle",
        )
    last_s = min(_last_s(text(hook, "clientConfig", "caBundle")) for hook in ours)
    until = datetime.fromtimestamp(last_s, UTC).date()
    if last_s - now_s < SOON_S:
        return warning(
            f"the webhook's authority ends on {until}",
            "it should have been renewed: look at cert-manager's Certificate, or the controller's "
            "log",
        )
    return ok(f"trusted until {until}")


def _bundle_problems(hook: Object, now_s: float) -> Iterator[str]:
    bundle = text(hook, "clientConfig", "caBundle")
    if not bundle:
        yield f"{text(hook, 'name')} has no caBundle"
        return
    try:
        last_s = _last_s(bundle)
    except ValueError as error:
        yield f"the caBundle of {text(hook, 'name')} is no certificate: {error}"
        return
    if last_s <= now_s:
        until = datetime.fromtimestamp(last_s, UTC).isoformat(timespec="minutes")
        yield f"the authority of {text(hook, 'name')} has expired ({until})"


def _last_s(bundle: str) -> float:
    """When the last certificate of a bundle ends; raises ValueError."""
    try:
        pem = base64.b64decode(bundle, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
    found = x509.load_pem_x509_certificates(pem)
    return max(one.not_valid_after_utc.timestamp() for one in found)


def judge_cert_manager(seen: tuple[bool, Webhooks, Names]) -> Verdict:
    """Only where our configurations ask for its injection."""
    served, webhooks, names = seen
    wants = any(
        text(configuration, "metadata", "annotations", "cert-manager.io/inject-ca-from")
        for configuration in (*webhooks.mutating, *webhooks.validating)
        if name(configuration) in (names.mutating, names.validating)
    )
    if wants and not served:
        return wrong(
            "the webhook's certificate is to come from cert-manager, which is not there",
            "install cert-manager, or helm upgrade with certs.certManager.enabled=false",
        )
    if wants:
        return ok("cert-manager makes the webhook's certificate")
    return ok(f"the chart's own certificate; cert-manager is {'there' if served else 'not there'}")


def _authorities(seen: ClusterObservations) -> tuple[Webhooks, Names, float] | Unseen:
    found = seen.webhooks
    return found if isinstance(found, Unseen) else (found, seen.names, seen.now_s)


def _cert_manager(seen: ClusterObservations) -> tuple[bool, Webhooks, Names] | Unseen:
    found = both(seen.cert_manager, seen.webhooks)
    return found if isinstance(found, Unseen) else (*found, seen.names)


AUTHORITIES: Check[ClusterObservations] = check(
    "webhook.authority", "webhook certificates", _authorities, judge_authorities, advice=ASK
)

CERT_MANAGER: Check[ClusterObservations] = check(
    "webhook.cert-manager", "cert-manager", _cert_manager, judge_cert_manager, advice=ASK
)
