"""What a cluster's labelled nodes must have, as the API shows them; pure."""

import re

from casaba.policy.diagnosis.cluster.control_plane import OLDEST_MINOR, minor_version
from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Objects
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
from casaba.policy.diagnosis.objects import label, name, text
from casaba.policy.diagnosis.remedies import CONTAINERD_1, enable_cdi
from casaba.settings.doctor import Names


def labelled(nodes: Objects, names: Names) -> Objects:
    """The nodes whose cards are to be served."""
    return tuple(
        node for node in nodes if all(label(node, key) == value for key, value in names.node_labels)
    )


def told_labels(names: Names) -> str:
    """The labels that such a node has, as kubectl takes them."""
    return " ".join("=".join(pair) for pair in names.node_labels)


def judge_labels(seen: tuple[Objects, Names]) -> Verdict:
    """Agents run where the label is."""
    nodes, names = seen
    chosen, told = labelled(nodes, names), told_labels(names)
    if chosen:
        return ok(f"{count(len(chosen), 'node')} labelled {told}: {few(map(name, chosen))}")
    return warning(
        f"none of {count(len(nodes), 'node')} has the {_LABEL[len(names.node_labels) > 1]} {told}, "
        "so no card is served",
        f"kubectl label node NODE {told}",
    )


_LABEL = ("label", "labels")


def judge_kubelets(seen: tuple[Objects, Names]) -> Verdict:
    """Older kubelets speak another version of the plugin protocol."""
    nodes, names = seen
    chosen = labelled(nodes, names)
    if not chosen:
        return skipped("no node is labelled")
    told = {name(node): text(node, "status", "nodeInfo", "kubeletVersion") for node in chosen}
    old = [f"{node} ({version})" for node, version in told.items() if _is_old(version)]
    if old:
        return wrong(
            f"the kubelet is too old on {few(old)}",
            f"upgrade it to 1.{OLDEST_MINOR} or newer",
        )
    return ok(few(sorted(set(told.values()))))


def _is_old(version: str) -> bool:
    minor = minor_version({"gitVersion": version})
    return minor is not None and minor < OLDEST_MINOR


_RUNTIME = re.compile(r"(?P<kind>[a-z-]+)://v?(?P<major>\d+)\.(?P<minor>\d+)")

_ON_BY_DEFAULT = {"containerd": (2, 0), "cri-o": (1, 23)}

_POSSIBLE = {"containerd": (1, 7)}


def judge_runtimes(seen: tuple[Objects, Names]) -> Verdict:
    """CDI is on by default in containerd 2.0 and CRI-O 1.23; containerd 1.7 has to be told."""
    nodes, names = seen
    chosen = labelled(nodes, names)
    if not chosen:
        return skipped("no node is labelled")
    told = {
        name(node): text(node, "status", "nodeInfo", "containerRuntimeVersion") for node in chosen
    }
    old = [f"{node} ({runtime})" for node, runtime in told.items() if _cdi(runtime) == "never"]
    if old:
        return wrong(
            f"the container runtime knows no CDI on {few(old)}",
            "use containerd 2.0 or newer, or CRI-O 1.23 or newer",
        )
    asked = [f"{node} ({runtime})" for node, runtime in told.items() if _cdi(runtime) != "on"]
    if asked:
        return warning(
            f"CDI may be off on {few(asked)}",
            f"{enable_cdi(CONTAINERD_1)}; `casaba doctor --node` on the node looks at it",
        )
    return ok(f"CDI is on by default: {few(sorted(set(told.values())))}")


def _cdi(runtime: str) -> str:
    found = _RUNTIME.match(runtime)
    if not found:
        return "unknown"
    version = (int(found["major"]), int(found["minor"]))
    if found["kind"] == "docker":
        return "never"
    if found["kind"] not in _ON_BY_DEFAULT:
        return "unknown"
    if version >= _ON_BY_DEFAULT[found["kind"]]:
        return "on"
    possible = _POSSIBLE.get(found["kind"])
    return "asked" if possible and version >= possible else "never"


def _nodes(seen: ClusterObservations) -> tuple[Objects, Names] | Unseen:
    return both(seen.nodes, seen.names)


LIST_NODES = "grant list on nodes to the one who runs this"

LABELS: Check[ClusterObservations] = check(
    "nodes.labels", "labelled nodes", _nodes, judge_labels, advice=LIST_NODES
)

KUBELETS: Check[ClusterObservations] = check(
    "nodes.kubelets", "kubelets", _nodes, judge_kubelets, advice=LIST_NODES
)

RUNTIMES: Check[ClusterObservations] = check(
    "nodes.runtimes", "container runtimes", _nodes, judge_runtimes, advice=LIST_NODES
)
