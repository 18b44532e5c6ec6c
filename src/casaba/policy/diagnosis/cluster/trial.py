"""A classic pod on trial: whether it would be converted; pure."""

from dataclasses import dataclass

from casaba.policy.diagnosis.cluster.observations import (
    ClusterObservations,
    Trial,
    Webhooks,
)
from casaba.policy.diagnosis.cluster.webhook import ASK, named, our_hooks
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
from casaba.policy.diagnosis.label_selectors import selects
from casaba.policy.diagnosis.objects import Object, items, part, text
from casaba.settings.doctor import Names

_CHART_HOOKS = frozenset({"mutate.hami.io"})
"""How the chart names the webhook that is asked, where its configuration can't be read."""

_DENIED = "denied the request"

_NOT_CALLED = "failed calling webhook"

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that every namespace has."""


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A trial, and who should have had a word in it."""

    trial: Trial
    resource: str
    hooks: frozenset[str]
    """Names by which the API server tells of our webhooks."""
    unasked: str | Unseen | None
    """Why the webhook is not meant to be asked about this pod."""


def judge_trial(case: _Case) -> Verdict:
    """A classic pod on trial: what the API server makes of it."""
    if case.trial.pod is not None and _is_converted(case.trial.pod, case.resource):
        return ok(f"a trial pod that asks for {case.resource} got a claim")
    if isinstance(case.unasked, str):
        return skipped(case.unasked)
    if case.trial.refusal is not None:
        return _judge_refusal(case.trial.refusal, case.hooks)
    if isinstance(case.unasked, Unseen):
        return unknown(
            f"a trial pod was stored as it is; is a webhook to be asked? {case.unasked.reason}", ASK
        )
    return wrong(
        f"a trial pod that asks for {case.resource} was stored as it is",
        "the API server did not ask the webhook, or could not and went on: look at "
        "failurePolicy, namespaceSelector and matchConditions of its configuration",
    )


def _is_converted(pod: Object, resource: str) -> bool:
    kept = any(
        resource in part(container, "resources", "limits")
        for container in items(pod, "spec", "containers")
    )
    return not kept and bool(items(pod, "spec", "resourceClaims"))


def _judge_refusal(refusal: str, hooks: frozenset[str]) -> Verdict:
    is_ours = any(f'"{hook}"' in refusal for hook in hooks)
    if is_ours and _NOT_CALLED in refusal:
        return wrong(f"a trial pod was refused: {refusal}", _advice_of_call(refusal))
    if is_ours and _DENIED in refusal:
        return ok(f"the webhook answers: {refusal}")
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


def _unasked(webhooks: Webhooks, names: Names, trial: Trial) -> str | None:
    configuration = named(webhooks.mutating, names.mutating)
    if configuration is None:
        return (
            f"there is no MutatingWebhookConfiguration {names.mutating}, so classic pods are not "
            "converted"
        )
    labels = {**trial.namespace_labels, _NAMESPACE_NAME: trial.namespace}
    hooks = items(configuration, "webhooks")
    if not hooks or any(selects(part(hook, "namespaceSelector"), labels) for hook in hooks):
        return None
    return (
        f"the webhook leaves the namespace {trial.namespace} alone (its namespaceSelector); name "
        "another with --trial-namespace"
    )


def _trial(seen: ClusterObservations) -> _Case | Unseen:
    trial, webhooks, names = seen.trial, seen.webhooks, seen.names
    if isinstance(trial, Unseen):
        return trial
    if isinstance(webhooks, Unseen):
        return _Case(trial=trial, resource=names.resource, hooks=_CHART_HOOKS, unasked=webhooks)
    return _Case(
        trial=trial,
        resource=names.resource,
        hooks=frozenset(text(hook, "name") for hook in our_hooks(webhooks, names)) or _CHART_HOOKS,
        unasked=_unasked(webhooks, names, trial),
    )


TRIAL: Check[ClusterObservations] = check(
    "webhook.trial",
    "a classic pod on trial",
    _trial,
    judge_trial,
    advice="it needs the right to create pods, of which nothing is stored",
)
