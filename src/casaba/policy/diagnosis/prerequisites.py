"""What the control plane must have before casaba is installed; pure."""

import re
from collections.abc import Iterator

from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    few,
    ok,
    skipped,
    unknown,
    warning,
    wrong,
)
from casaba.policy.diagnosis.objects import Object, items, label, name, part, text
from casaba.policy.diagnosis.observations import Canary, ClusterObservations, Objects
from casaba.settings.doctor import Names
from casaba.settings.host_paths import DRIVER_NAME

_NAME = "app.kubernetes.io/name"

GATE = "DRAConsumableCapacity"
OLDEST_MINOR = 34
GATE_ON_MINOR = 36
"""From 1.36 the gate is on by default (KEP 5075)."""

_TURN_ON = (
    f"set --feature-gates={GATE}=true on kube-apiserver, kube-scheduler and every kubelet, and "
    "start them again; where the control plane is somebody else's, use Kubernetes 1.36 or newer"
)
_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_GATE_FLAG = re.compile(rf"\b{GATE}=(true|false)\b", re.IGNORECASE)
_EVERY_GATE = re.compile(r"\bAllAlpha=(true)\b", re.IGNORECASE)


def minor_version(version: Object) -> int | None:
    """34 of Kubernetes 1.34; None when it is not told."""
    found = _MINOR.match(text(version, "gitVersion"))
    return int(found[2]) if found and found[1] == "1" else None


def judge_version(version: Object) -> Verdict:
    """1.34 is the first with resource.k8s.io/v1."""
    told, minor = text(version, "gitVersion"), minor_version(version)
    if minor is None:
        return unknown(f"the API server says that its version is {told!r}")
    if minor < OLDEST_MINOR:
        return wrong(
            f"the API server is {told}",
            f"upgrade the cluster to Kubernetes 1.{OLDEST_MINOR} or newer; best is "
            f"1.{GATE_ON_MINOR}, which needs no feature gate",
        )
    if minor == OLDEST_MINOR:
        return ok(
            f"the API server is {told}, which needs the feature gate {GATE}, and 1.35 or newer for "
            "nodes with several cards"
        )
    if minor < GATE_ON_MINOR:
        return ok(f"the API server is {told}, which needs the feature gate {GATE}")
    return ok(f"the API server is {told}")


def judge_many_cards(seen: tuple[Object, Objects]) -> Verdict:
    """1.34's scheduler fills only the first card of a slice (kubernetes/kubernetes#133705)."""
    version, slices = seen
    if minor_version(version) != OLDEST_MINOR:
        return skipped("only Kubernetes 1.34 has this fault")
    many = [
        text(one, "spec", "nodeName") for one in slices if len(items(one, "spec", "devices")) > 1
    ]
    if not many:
        return ok("no node offers more than one card")
    return warning(
        f"the scheduler of 1.34 gives out one card of a node and then no other: {few(many)}",
        "upgrade the cluster to Kubernetes 1.35 or newer",
    )


def judge_resource_api(served: bool) -> Verdict:
    """Dynamic Resource Allocation, general since 1.34."""
    if served:
        return ok("resource.k8s.io/v1 is served")
    return wrong(
        "resource.k8s.io/v1 is not served",
        f"use Kubernetes 1.{OLDEST_MINOR} or newer, and do not turn it off with --runtime-config "
        "or DynamicResourceAllocation=false",
    )


def judge_gate(seen: tuple[bool, Canary]) -> Verdict:
    """The API server's gate: off, it silently drops the fields (KEP 5075)."""
    served, canary = seen
    if not served:
        return skipped("there is no resource.k8s.io/v1")
    if canary.refusal is not None:
        return unknown(
            f"a trial slice was refused: {canary.refusal}",
            "let the one who runs this create resourceslices (nothing is stored), and look which "
            "admission policy refuses them",
        )
    if canary.dropped:
        return wrong(
            f"the API server drops {few(canary.dropped[:3])}: {GATE} is off",
            _TURN_ON,
        )
    return ok(f"the API server keeps consumable capacities ({GATE} is on)")


def judge_scheduler(seen: tuple[Object, Objects, Objects]) -> Verdict:
    """By what a scheduler has allocated, else by the flags of its pods."""
    version, claims, pods = seen
    if any(_is_consumed(claim) for claim in claims):
        return ok("the scheduler has given out shares of cards")
    minor = minor_version(version)
    off = [name(pod) for pod in pods if _scheduler_gate(pod, minor) is False]
    if off:
        return wrong(f"{GATE} is off in {few(off)}", _TURN_ON)
    if pods:
        return ok(f"{GATE} is on in {few(map(name, pods))}")
    if minor is not None and minor >= GATE_ON_MINOR:
        return ok(f"{GATE} is on by default in 1.{minor}; the scheduler itself is not shown")
    return skipped(
        "the scheduler is not shown, and no share of a card has been given out yet: if a pod stays "
        f"Pending, {_TURN_ON}"
    )


def _is_consumed(claim: Object) -> bool:
    results = items(claim, "status", "allocation", "devices", "results")
    return any(part(result, "consumedCapacity") for result in results)


def _scheduler_gate(pod: Object, minor: int | None) -> bool | None:
    words = " ".join(_words(pod))
    if flag := _GATE_FLAG.search(words):
        return flag[1].lower() == "true"
    if _EVERY_GATE.search(words) or "--config" in words:
        return None
    return minor is not None and minor >= GATE_ON_MINOR


def _words(pod: Object) -> Iterator[str]:
    for container in items(pod, "spec", "containers"):
        for key in ("command", "args"):
            given = container.get(key)
            yield from (str(word) for word in given) if isinstance(given, list) else ()


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
        if (resource := text(one, "spec", "extendedResourceName")).startswith(names.resource)
    ]
    if not clash:
        return ok(f"no DeviceClass stands for {names.resource}")
    return wrong(
        f"{few(clash)}: pods that ask for it may get a whole card",
        "take extendedResourceName out of that DeviceClass, or give casaba another resourceName",
    )


def _scheduler(seen: ClusterObservations) -> tuple[Object, Objects, Objects] | Unseen:
    if isinstance(seen.version, Unseen):
        return seen.version
    claims = () if isinstance(seen.claims, Unseen) else seen.claims
    pods = () if isinstance(seen.schedulers, Unseen) else seen.schedulers
    return seen.version, claims, pods


VERSION: Check[ClusterObservations] = check(
    "cluster.version",
    "Kubernetes version",
    lambda seen: seen.version,
    judge_version,
    advice="does the API server run, and is this its address? See kubectl cluster-info",
)
RESOURCE_API: Check[ClusterObservations] = check(
    "cluster.resource-api",
    "DRA's API",
    lambda seen: seen.resource_api,
    judge_resource_api,
    advice="try again: everybody may read /apis",
)
GATE_OF_SERVER: Check[ClusterObservations] = check(
    "cluster.gate",
    f"{GATE}, API server",
    lambda seen: both(seen.resource_api, seen.canary),
    judge_gate,
    advice="it needs the right to create resourceslices, of which nothing is stored",
)
GATE_OF_SCHEDULER: Check[ClusterObservations] = check(
    "cluster.scheduler-gate", f"{GATE}, scheduler", _scheduler, judge_scheduler
)
MANY_CARDS: Check[ClusterObservations] = check(
    "cluster.many-cards",
    "nodes with several cards",
    lambda seen: both(seen.version, seen.slices),
    judge_many_cards,
    advice="grant list on resourceslices to the one who runs this",
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
