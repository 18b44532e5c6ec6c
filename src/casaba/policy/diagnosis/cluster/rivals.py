"""Others that give out the same cards, or take the same pods; pure."""

from datetime import UTC, datetime

from casaba.policy.conflicts import ConflictRules, find_conflicts, forget_hami
from casaba.policy.diagnosis.cluster.nodes import LIST_NODES, labelled, told_labels
from casaba.policy.diagnosis.cluster.observations import (
    Canary,
    ClusterObservations,
    Objects,
    Webhooks,
)
from casaba.policy.diagnosis.cluster.webhook import ASK
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
    wrong,
)
from casaba.policy.diagnosis.objects import items, label, name, text
from casaba.settings.doctor import Names
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.node_agent import NodeAgentSettings

_Seen = tuple[Objects, Names, float, datetime | None]
"""Nodes, our own clock, and what the API server's has shown."""


def judge_conflicts(seen: _Seen) -> Verdict:
    """Nobody else may give out the cards of a labelled node."""
    nodes, names, now_s, server = seen
    chosen = labelled(nodes, names)
    if not chosen:
        return skipped("no node is labelled")
    settings = NodeAgentSettings(node_name="")
    resources = tuple(dict.fromkeys((*settings.card_resources, names.resource)))
    rules = ConflictRules(resources=resources, silence_s=settings.hami_silence_s)
    utc = datetime.fromtimestamp(now_s, UTC)
    found = [
        (name(node), problem.reason)
        for node in chosen
        for problem in find_conflicts(
            node, None, rules, now_s=now_s, utc=utc, server=server
        ).conflicts
    ]
    if not found:
        return ok(f"nobody else offers the cards of {count(len(chosen), 'labelled node')}")
    told = few(f"{node} ({_WHO.get(reason, reason)})" for node, reason in found)
    has_hami = any(reason == _HAMI for _, reason in found)
    return wrong(f"somebody else offers the same cards: {told}", _migrate(names, has_hami=has_hami))


_HAMI = "HamiOffersCards"

_WHO = {"DevicePluginOffersCards": "a device plugin", _HAMI: "an old HAMi"}


def _migrate(names: Names, *, has_hami: bool) -> str:
    steps = (
        "move one node after the other: drain its GPU pods, take the device plugin (or the old "
        "HAMi) away from it with the label or DaemonSet that puts it there, then label it "
        f"{told_labels(names)} again; uninstall an old HAMi when no node is left"
    )
    return steps + f"; where HAMi is gone for good: {forget_hami('NODE')}" * has_hami


def _rivals(seen: ClusterObservations) -> _Seen | Unseen:
    if isinstance(seen.nodes, Unseen):
        return seen.nodes
    shown_s = seen.canary.server_s if isinstance(seen.canary, Canary) else None
    server = None if shown_s is None else datetime.fromtimestamp(shown_s, UTC)
    return seen.nodes, seen.names, seen.now_s, server


_NAME = "app.kubernetes.io/name"


def judge_same_driver(seen: tuple[Objects, Objects]) -> Verdict:
    """Slices of our driver's name before there is a casaba: HAMi's own DRA driver, mostly."""
    slices, classes = seen
    is_ours = any(label(one, _NAME) == "casaba" for one in classes if name(one) == DRIVER_NAME)
    nodes = sorted({text(one, "spec", "nodeName") or "no node" for one in slices})
    if is_ours or not nodes:
        return ok("no other driver of the same name")
    return wrong(
        f"somebody else publishes cards as {DRIVER_NAME}: {few(nodes)}",
        "uninstall HAMi's DRA driver (helm list -A), or stop the agent that was started by hand; "
        "slices that stay: kubectl delete resourceslices --field-selector "
        f"spec.driver={DRIVER_NAME}",
    )


def judge_extended_resource(seen: tuple[Objects, Names]) -> Verdict:
    """A class with an extendedResourceName (KEP 5004) also serves what the webhook converts."""
    classes, names = seen
    clash = [
        f"{name(one)} ({resource})"
        for one in classes
        if (resource := text(one, "spec", "extendedResourceName")) in names.converted
    ]
    if not clash:
        return ok("no DeviceClass stands for a classic resource")
    return wrong(
        f"{few(clash)}: pods that ask for it may get a whole card",
        "take extendedResourceName out of that DeviceClass, or let casaba's be called otherwise "
        "(chart values resourceName, resourceMem, resourceCores and so on)",
    )


_OLD_HAMI = ("vgpu.hami.io",)
"""Webhooks of HAMi's scheduler."""


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
        "uninstall that HAMi when its last pods have gone; until then give the pods that are for "
        "casaba claims of their own, for both webhooks take those that name nvidia.com/gpu",
    )


OLD_WEBHOOK: Check[ClusterObservations] = check(
    "webhook.old", "old HAMi's webhook", lambda seen: seen.webhooks, judge_old_webhook, advice=ASK
)

CONFLICTS: Check[ClusterObservations] = check(
    "nodes.conflicts", "device plugins, old HAMi", _rivals, judge_conflicts, advice=LIST_NODES
)

SAME_DRIVER: Check[ClusterObservations] = check(
    "cluster.same-driver",
    "HAMi's DRA driver",
    lambda seen: both(seen.slices, seen.classes),
    judge_same_driver,
    advice="grant list on resourceslices and deviceclasses to the one who runs this",
)

EXTENDED_RESOURCE: Check[ClusterObservations] = check(
    "cluster.extended-resource",
    "extended resources",
    lambda seen: both(seen.classes, seen.names),
    judge_extended_resource,
    advice="grant list on deviceclasses to the one who runs this",
)
