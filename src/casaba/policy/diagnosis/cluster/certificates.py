"""The webhook's certificates: whom the API server trusts, and who makes them; pure."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from cryptography import x509

from casaba.policy.diagnosis.cluster.observations import (
    ClusterObservations,
    ServedCertificate,
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


_Seen = tuple[Webhooks, Names, float, Mapping[str, ServedCertificate]]


def judge_certificates(seen: _Seen) -> Verdict:
    """What the API server trusts when it calls the webhook, and what is served to it."""
    webhooks, names, now_s, served = seen
    if not (ours := tuple(our_hooks(webhooks, names))):
        return skipped("there is no webhook configuration")
    problems = [problem for hook in ours for problem in _bundle_problems(hook, now_s)]
    problems += [problem for pod in served for problem in _served_problems(pod, served[pod], now_s)]
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


def _served_problems(pod: str, served: ServedCertificate, now_s: float) -> Iterator[str]:
    """A replica with such a certificate is not ready, so that nobody is there to be called."""
    if not served.ends_s:
        yield f"{pod} has no certificate to serve"
    elif served.ends_s <= now_s:
        yield f"the certificate that {pod} serves has expired ({_minute(served.ends_s)})"
    if served.authority_ends_s is not None and served.authority_ends_s <= now_s:
        yield f"the authority of {pod} has expired ({_minute(served.authority_ends_s)})"


def _minute(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="minutes")


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
        yield f"the authority of {text(hook, 'name')} has expired ({_minute(last_s)})"


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


def _certificates(seen: ClusterObservations) -> _Seen | Unseen:
    """Replicas that did not answer are left out: the trial pod tells whether they can be called."""
    if isinstance(seen.webhooks, Unseen):
        return seen.webhooks
    told = {} if isinstance(seen.served, Unseen) else seen.served
    served = {pod: one for pod, one in told.items() if not isinstance(one, Unseen)}
    return seen.webhooks, seen.names, seen.now_s, served


def _cert_manager(seen: ClusterObservations) -> tuple[bool, Webhooks, Names] | Unseen:
    found = both(seen.cert_manager, seen.webhooks)
    return found if isinstance(found, Unseen) else (*found, seen.names)


CERTIFICATES: Check[ClusterObservations] = check(
    "webhook.authority", "webhook certificates", _certificates, judge_certificates, advice=ASK
)

CERT_MANAGER: Check[ClusterObservations] = check(
    "webhook.cert-manager", "cert-manager", _cert_manager, judge_cert_manager, advice=ASK
)
