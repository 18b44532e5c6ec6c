"""What a cluster's labelled nodes must have, as the API shows them; pure."""

import re
from datetime import UTC, datetime

from casaba.policy.conflicts import ConflictRules, find_conflicts
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
from casaba.policy.diagnosis.observations import ClusterObservations, Objects
from casaba.policy.diagnosis.prerequisites import OLDEST_MINOR, minor_version
from casaba.settings.doctor import Names
from casaba.settings.node_agent import NodeAgentSettings

_MIGRATE = (
    "move one node after the other: drain its GPU pods, take the device plugin (or the old HAMi) "
    "away from it with the label or DaemonSet that puts it there, then label it gpu=on again; "
    "uninstall an old HAMi when no node is left"
)


def labelled(nodes: Objects, names: Names) -> Objects:
    """The nodes whose cards are to be served."""
    key, value = names.node_label
    return tuple(node for node in nodes if label(node, key) == value)


def judge_labels(seen: tuple[Objects, Names]) -> Verdict:
    """Agents run where the label is."""
    nodes, names = seen
    chosen, told = labelled(nodes, names), "=".join(names.node_label)
    if chosen:
        return ok(f"{count(len(chosen), 'node')} labelled {told}: {few(map(name, chosen))}")
    return warning(
        f"none of {count(len(nodes), 'node')} has the label {told}, so no card is served",
        f"kubectl label node NODE {told}",
    )


def judge_conflicts(seen: tuple[Objects, Names, float]) -> Verdict:
    """Nobody else may give out the cards of a labelled node."""
    nodes, names, now_s = seen
    chosen = labelled(nodes, names)
    if not chosen:
        return skipped("no node is labelled")
    settings = NodeAgentSettings(node_name="")
    resources = tuple(dict.fromkeys((*settings.card_resources, names.resource)))
    rules = ConflictRules(resources=resources, silence_s=settings.hami_silence_s)
    utc = datetime.fromtimestamp(now_s, UTC)
    found = [
        f"{name(node)} ({_WHO.get(problem.reason, problem.reason)})"
        for node in chosen
        for problem in find_conflicts(node, None, rules, now_s=now_s, utc=utc).conflicts
    ]
    if not found:
        return ok(f"nobody else offers the cards of {count(len(chosen), 'labelled node')}")
    return wrong(f"somebody else offers the same cards: {few(found)}", _MIGRATE)


_WHO = {"DevicePluginOffersCards": "a device plugin", "HamiOffersCards": "an old HAMi"}


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
    return ok(f"kubelets: {few(sorted(set(told.values())))}")


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
            'set enable_cdi = true under [plugins."io.containerd.grpc.v1.cri"] in '
            "/etc/containerd/config.toml and start containerd again; `casaba doctor --node` on the "
            "node looks at it",
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


def _three(seen: ClusterObservations) -> tuple[Objects, Names, float] | Unseen:
    return seen.nodes if isinstance(seen.nodes, Unseen) else (seen.nodes, seen.names, seen.now_s)


_LIST_NODES = "grant list on nodes to the one who runs this"
LABELS: Check[ClusterObservations] = check(
    "nodes.labels", "labelled nodes", _nodes, judge_labels, advice=_LIST_NODES
)
CONFLICTS: Check[ClusterObservations] = check(
    "nodes.conflicts", "device plugins, old HAMi", _three, judge_conflicts, advice=_LIST_NODES
)
KUBELETS: Check[ClusterObservations] = check(
    "nodes.kubelets", "kubelets", _nodes, judge_kubelets, advice=_LIST_NODES
)
RUNTIMES: Check[ClusterObservations] = check(
    "nodes.runtimes", "container runtimes", _nodes, judge_runtimes, advice=_LIST_NODES
)
