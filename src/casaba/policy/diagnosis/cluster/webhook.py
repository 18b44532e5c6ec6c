"""The webhook: who is to be asked, and whether somebody is there; pure."""

from collections.abc import Iterator

from casaba.policy.diagnosis.cluster.installation import component, is_ready
from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Objects, Webhooks
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
    warning,
    wrong,
)
from casaba.policy.diagnosis.objects import Object, items, name, text
from casaba.settings.doctor import Names

ASK = "grant list on mutating- and validatingwebhookconfigurations, and on pods"


def judge_configuration(seen: tuple[Webhooks, Names, bool]) -> Verdict:
    """The configurations of the chart are there, and no classic pod passes the webhook by."""
    webhooks, names, is_there = seen
    if not is_there:
        return skipped("no webhook is installed; pods with claims of their own need none")
    if missing := tuple(_missing(webhooks, names)):
        return warning(
            f"no {few(missing)}",
            "without it classic pods are not converted, or claims not checked: helm upgrade with "
            "webhook.config.mutating.enabled and webhook.config.validating.enabled",
        )
    converting = items(named(webhooks.mutating, names.mutating) or {}, "webhooks")
    lenient = [text(hook, "name") for hook in converting if text(hook, "failurePolicy") == "Ignore"]
    if lenient:
        return warning(
            f"{few(lenient)} has failurePolicy Ignore",
            "while the webhook is away, a classic pod is stored as it is and stays Pending; set "
            "failurePolicy to Fail",
        )
    return ok(f"{count(len(tuple(our_hooks(webhooks, names))), 'webhook')}")


def _missing(webhooks: Webhooks, names: Names) -> Iterator[str]:
    if not named(webhooks.mutating, names.mutating):
        yield f"MutatingWebhookConfiguration {names.mutating}"
    if not named(webhooks.validating, names.validating):
        yield f"ValidatingWebhookConfiguration {names.validating}"


def judge_pods(seen: tuple[Webhooks, Objects, Names]) -> Verdict:
    """Somebody is behind the webhook's Service."""
    webhooks, pods, names = seen
    replicas = component(pods, "webhook")
    if not replicas and not any(our_hooks(webhooks, names)):
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


def named(configurations: Objects, wanted: str) -> Object | None:
    return next((one for one in configurations if name(one) == wanted), None)


def our_hooks(webhooks: Webhooks, names: Names) -> Iterator[Object]:
    for found in (
        named(webhooks.mutating, names.mutating),
        named(webhooks.validating, names.validating),
    ):
        yield from items(found or {}, "webhooks")


def is_installed(seen: ClusterObservations) -> bool | Unseen:
    """By what can be seen of it: configurations, or pods."""
    if isinstance(seen.webhooks, Webhooks) and any(our_hooks(seen.webhooks, seen.names)):
        return True
    if isinstance(seen.pods, Unseen):
        return seen.pods
    if component(seen.pods, "webhook"):
        return True
    return seen.webhooks if isinstance(seen.webhooks, Unseen) else False


def _configuration(seen: ClusterObservations) -> tuple[Webhooks, Names, bool] | Unseen:
    found = both(seen.webhooks, is_installed(seen))
    return found if isinstance(found, Unseen) else (found[0], seen.names, found[1])


def _pods(seen: ClusterObservations) -> tuple[Webhooks, Objects, Names] | Unseen:
    found = both(seen.webhooks, seen.pods)
    return found if isinstance(found, Unseen) else (*found, seen.names)


CONFIGURATION: Check[ClusterObservations] = check(
    "webhook.configuration",
    "webhook configuration",
    _configuration,
    judge_configuration,
    advice=ASK,
)

REPLICAS: Check[ClusterObservations] = check(
    "webhook.replicas", "webhook replicas", _pods, judge_pods, advice=ASK
)
