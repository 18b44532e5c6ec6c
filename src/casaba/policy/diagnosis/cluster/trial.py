"""A classic pod on trial: whether it would be converted; pure."""

from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Trial
from casaba.policy.diagnosis.cluster.webhook import ASK, is_installed, our_hooks
from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    check,
    ok,
    skipped,
    unknown,
    wrong,
)
from casaba.policy.diagnosis.objects import items, part, text
from casaba.settings.doctor import Names

_CHART_HOOKS = frozenset({"mutate.hami.io"})
"""How the chart names the webhook that is asked, where its configuration can't be read."""

_DENIED = "denied the request"

_NOT_CALLED = "failed calling webhook"


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
            f"a trial pod was stored as it is; is a webhook installed? {is_installed.reason}", ASK
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


def _trial(
    seen: ClusterObservations,
) -> tuple[Trial, Names, frozenset[str], bool | Unseen] | Unseen:
    trial, webhooks = seen.trial, seen.webhooks
    if isinstance(trial, Unseen):
        return trial
    ours = () if isinstance(webhooks, Unseen) else tuple(our_hooks(webhooks, seen.names))
    hooks = frozenset(text(hook, "name") for hook in ours) or _CHART_HOOKS
    return trial, seen.names, hooks, is_installed(seen)


TRIAL: Check[ClusterObservations] = check(
    "webhook.trial",
    "a classic pod on trial",
    _trial,
    judge_trial,
    advice="it needs the right to create pods, of which nothing is stored",
)
