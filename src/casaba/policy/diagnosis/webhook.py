"""The webhook: whether classic pods are converted; pure."""

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509

from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    count,
    few,
    ok,
    skipped,
    unknown,
    warning,
    wrong,
)
from casaba.policy.diagnosis.objects import (
    Object,
    items,
    name,
    part,
    text,
)
from casaba.policy.diagnosis.observations import (
    ClusterObservations,
    Objects,
    Trial,
    Webhooks,
)
from casaba.policy.diagnosis.parts import component, is_ready
from casaba.settings.doctor import Names

SOON_S = 7 * 24 * 3600.0
"""A certificate that ends so soon should have been renewed."""

_OLD_HAMI = ("vgpu.hami.io",)
"""Webhooks of HAMi's scheduler."""

_ASK = "grant list on mutating- and validatingwebhookconfigurations, and on pods"

_CHART_HOOKS = frozenset({"mutate.hami.io"})
"""How the chart names the webhook that is asked, where its configuration can't be read."""

_DENIED = "denied the request"
_NOT_CALLED = "failed calling webhook"


def judge_configuration(seen: tuple[Webhooks, Names, bool]) -> Verdict:
    """The configurations of the chart are there and name somebody to call."""
    webhooks, names, is_installed = seen
    ours = tuple(_ours(webhooks, names))
    missing = []
    if not _named(webhooks.mutating, names.mutating):
        missing.append(f"MutatingWebhookConfiguration {names.mutating}")
    if not _named(webhooks.validating, names.validating):
        missing.append(f"ValidatingWebhookConfiguration {names.validating}")
    if not ours and not is_installed:
        return skipped("no webhook is installed; pods with claims of their own need none")
    if missing:
        return warning(
            f"no {few(missing)}",
            "without it classic pods are not converted, or claims not checked: helm upgrade with "
            "webhook.config.mutating.enabled and webhook.config.validating.enabled",
        )
    lenient = [text(hook, "name") for hook in ours if text(hook, "failurePolicy") == "Ignore"]
    if lenient:
        return warning(
            f"{few(lenient)} has failurePolicy Ignore",
            "while the webhook is away, a classic pod is stored as it is and stays Pending; set "
            "failurePolicy to Fail",
        )
    return ok(f"{count(len(ours), 'webhook')}, failurePolicy Fail")


def judge_old_webhook(webhooks: Webhooks) -> Verdict:
    """HAMi's own webhook takes the same pods for its scheduler."""
    found = [
        name(configuration)
        for configuration in webhooks.mutating
        for hook in items(configuration, "webhooks")
        if text(hook, "name") in _OLD_HAMI
    ]
    if not found:
        return ok("no webhook of an old HAMi")
    return wrong(
        f"an old HAMi's webhook takes the same pods: {few(found)}",
        "uninstall that HAMi when its last pods have gone; until then label namespaces of casaba's "
        "pods hami.io/webhook=ignore for it",
    )


def judge_pods(seen: tuple[Webhooks, Objects, Names]) -> Verdict:
    """Somebody is behind the webhook's Service."""
    webhooks, pods, names = seen
    replicas = component(pods, "webhook")
    if not replicas and not any(_ours(webhooks, names)):
        return skipped("no webhook is installed")
    ready = [pod for pod in replicas if is_ready(pod)]
    if not ready:
        return wrong(
            f"no replica of the webhook is ready (of {len(replicas)})",
            "kubectl describe and kubectl logs of its pods say why: kubectl get pods -A "
            "-l app.kubernetes.io/component=webhook",
        )
    if len(ready) < len(replicas):
        return warning(
            f"{len(ready)} of {count(len(replicas), 'replica')} ready",
            "look at the others: kubectl get pods -A -l app.kubernetes.io/component=webhook",
        )
    return ok(f"{count(len(ready), 'replica')} ready")


def judge_authorities(seen: tuple[Webhooks, Names, float]) -> Verdict:
    """What the API server trusts when it calls the webhook."""
    webhooks, names, now_s = seen
    ours = tuple(_ours(webhooks, names))
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


def judge_trial(seen: tuple[Trial, Names, frozenset[str], bool | Unseen]) -> Verdict:
    """A classic pod on trial: what the API server makes of it."""
    trial, names, hooks, is_installed = seen
    if trial.refusal is not None:
        return _judge_refusal(trial.refusal, hooks, is_installed)
    pod = trial.pod or {}
    kept = any(
        resource.startswith(names.resource)
        for container in items(pod, "spec", "containers")
        for resource in part(container, "resources", "limits")
    )
    if not kept and items(pod, "spec", "resourceClaims"):
        return ok(f"a trial pod that asks for {names.resource} got a claim")
    if isinstance(is_installed, Unseen):
        return unknown(
            f"a trial pod was stored as it is; is a webhook installed? {is_installed.reason}", _ASK
        )
    if not is_installed:
        return skipped("no webhook is installed, so classic pods are not converted")
    return wrong(
        f"a trial pod that asks for {names.resource} was stored as it is",
        "the API server did not ask the webhook, or could not and went on: look at "
        "failurePolicy, namespaceSelector and matchConditions of its configuration",
    )


def _judge_refusal(refusal: str, hooks: frozenset[str], is_installed: bool | Unseen) -> Verdict:
    is_ours = any(f'"{hook}"' in refusal for hook in hooks)
    if is_ours and _NOT_CALLED in refusal:
        return wrong(f"a trial pod was refused: {refusal}", _advice_of_call(refusal))
    if is_ours and _DENIED in refusal:
        return ok(f"the webhook answers: {refusal}")
    if is_installed is False:
        return skipped("no webhook is installed")
    return unknown(
        f"a trial pod was refused: {refusal}",
        "let the one who runs this create pods (nothing is stored), or name a namespace where pods "
        "are allowed with --trial-namespace",
    )


def _advice_of_call(refusal: str) -> str:
    words = refusal.lower()
    if "expired" in words:
        return (
            "the webhook's certificate has expired: look at cert-manager's Certificate or the "
            "controller's log, and at the clocks of the control plane"
        )
    if "x509" in words or "certificate" in words or "tls" in words:
        return (
            "the webhook's certificate does not belong to the caBundle: look at cert-manager's "
            "cainjector or the controller's log"
        )
    return (
        "the API server can't reach the webhook: are its pods ready, does its Service select them, "
        "and do a NetworkPolicy or firewall let the control plane in?"
    )


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


def _named(configurations: Objects, wanted: str) -> Object | None:
    return next((one for one in configurations if name(one) == wanted), None)


def _ours(webhooks: Webhooks, names: Names) -> Iterator[Object]:
    for found in (
        _named(webhooks.mutating, names.mutating),
        _named(webhooks.validating, names.validating),
    ):
        yield from items(found or {}, "webhooks")


def _is_installed(seen: ClusterObservations) -> bool | Unseen:
    """By what can be seen of it: configurations, or pods."""
    if isinstance(seen.webhooks, Webhooks) and any(_ours(seen.webhooks, seen.names)):
        return True
    if isinstance(seen.pods, Unseen):
        return seen.pods
    if component(seen.pods, "webhook"):
        return True
    return seen.webhooks if isinstance(seen.webhooks, Unseen) else False


def _configuration(seen: ClusterObservations) -> tuple[Webhooks, Names, bool] | Unseen:
    found = both(seen.webhooks, _is_installed(seen))
    return found if isinstance(found, Unseen) else (found[0], seen.names, found[1])


def _pods(seen: ClusterObservations) -> tuple[Webhooks, Objects, Names] | Unseen:
    found = both(seen.webhooks, seen.pods)
    return found if isinstance(found, Unseen) else (*found, seen.names)


def _authorities(seen: ClusterObservations) -> tuple[Webhooks, Names, float] | Unseen:
    found = seen.webhooks
    return found if isinstance(found, Unseen) else (found, seen.names, seen.now_s)


def _trial(
    seen: ClusterObservations,
) -> tuple[Trial, Names, frozenset[str], bool | Unseen] | Unseen:
    trial, webhooks = seen.trial, seen.webhooks
    if isinstance(trial, Unseen):
        return trial
    ours = () if isinstance(webhooks, Unseen) else tuple(_ours(webhooks, seen.names))
    hooks = frozenset(text(hook, "name") for hook in ours) or _CHART_HOOKS
    return trial, seen.names, hooks, _is_installed(seen)


def _cert_manager(seen: ClusterObservations) -> tuple[bool, Webhooks, Names] | Unseen:
    found = both(seen.cert_manager, seen.webhooks)
    return found if isinstance(found, Unseen) else (*found, seen.names)


CONFIGURATION: Check[ClusterObservations] = check(
    "webhook.configuration",
    "webhook configuration",
    _configuration,
    judge_configuration,
    advice=_ASK,
)
OLD_WEBHOOK: Check[ClusterObservations] = check(
    "webhook.old", "old HAMi's webhook", lambda seen: seen.webhooks, judge_old_webhook, advice=_ASK
)
REPLICAS: Check[ClusterObservations] = check(
    "webhook.replicas", "webhook replicas", _pods, judge_pods, advice=_ASK
)
AUTHORITIES: Check[ClusterObservations] = check(
    "webhook.authority", "webhook certificates", _authorities, judge_authorities, advice=_ASK
)
TRIAL: Check[ClusterObservations] = check(
    "webhook.trial",
    "a classic pod on trial",
    _trial,
    judge_trial,
    advice="it needs the right to create pods, of which nothing is stored",
)
CERT_MANAGER: Check[ClusterObservations] = check(
    "webhook.cert-manager", "cert-manager", _cert_manager, judge_cert_manager, advice=_ASK
)
