"""What the control plane must have: its version, DRA's API and the feature gate; pure."""

import re
from collections.abc import Iterator

from casaba.policy.diagnosis.cluster.observations import Canary, ClusterObservations, Objects
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
from casaba.policy.diagnosis.objects import Object, items, name, part, text

GATE = "DRAConsumableCapacity"

OLDEST_MINOR = 34

GATE_ON_MINOR = 36
"""From 1.36 the gate is on by default (KEP 5075)."""

_COMPONENTS = "kube-apiserver, kube-scheduler and every kubelet"

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


def judge_resource_api(served: bool) -> Verdict:
    """Dynamic Resource Allocation, general since 1.34."""
    if served:
        return ok("resource.k8s.io/v1 is served")
    return wrong(
        "resource.k8s.io/v1 is not served",
        f"use Kubernetes 1.{OLDEST_MINOR} or newer, and do not turn it off with --runtime-config "
        "or DynamicResourceAllocation=false",
    )


def _turn_on(minor: int | None) -> str:
    if minor is not None and minor >= GATE_ON_MINOR:
        return (
            f"take {GATE}=false out of --feature-gates of {_COMPONENTS}, and start them again; in "
            f"1.{minor} the gate is on by default"
        )
    return (
        f"set --feature-gates={GATE}=true on {_COMPONENTS}, and start them again; where the "
        f"control plane is somebody else's, use Kubernetes 1.{GATE_ON_MINOR} or newer"
    )


def judge_gate(seen: tuple[Canary, int | None]) -> Verdict:
    """The API server's gate: off, it silently drops the fields (KEP 5075)."""
    canary, minor = seen
    if canary.refusal is not None:
        return unknown(
            f"a trial slice was refused: {canary.refusal}",
            "let the one who runs this create resourceslices (nothing is stored), and look which "
            "admission policy refuses them",
        )
    if canary.dropped:
        dropped = few(path.rpartition(".")[2] for path in canary.dropped[:1])
        return wrong(
            f"{GATE} is off: the API server drops {dropped}, without which a card can't be shared",
            _turn_on(minor),
        )
    return ok(f"{GATE} is on: the API server keeps what sharing a card needs")


def judge_scheduler(seen: tuple[Object, Objects, Objects]) -> Verdict:
    """By what a scheduler has allocated, else by the flags of its pods."""
    version, claims, pods = seen
    if any(_is_consumed(claim) for claim in claims):
        return ok("the scheduler has given out shares of cards")
    minor = minor_version(version)
    off = [name(pod) for pod in pods if _scheduler_gate(pod, minor) is False]
    if off:
        return wrong(f"{GATE} is off in {few(off)}", _turn_on(minor))
    if pods:
        return ok(f"{GATE} is on in {few(map(name, pods))}")
    return skipped(
        "the scheduler is not shown, and no share of a card has been given out yet: if a pod stays "
        f"Pending, {_turn_on(minor)}"
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


def _minor(seen: ClusterObservations) -> int | None:
    return None if isinstance(seen.version, Unseen) else minor_version(seen.version)


def without_resource_api(seen: ClusterObservations) -> str | None:
    """Why nothing of DRA can be looked at."""
    return "there is no resource.k8s.io/v1" if seen.resource_api is False else None


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
    "feature gate, API server",
    lambda seen: both(seen.canary, _minor(seen)),
    judge_gate,
    advice="it needs the right to create resourceslices, of which nothing is stored",
)

GATE_OF_SCHEDULER: Check[ClusterObservations] = check(
    "cluster.scheduler-gate", "feature gate, scheduler", _scheduler, judge_scheduler
)

MANY_CARDS: Check[ClusterObservations] = check(
    "cluster.many-cards",
    "nodes with several cards",
    lambda seen: both(seen.version, seen.slices),
    judge_many_cards,
    advice="grant list on resourceslices to the one who runs this",
)
