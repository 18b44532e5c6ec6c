"""The agents on the nodes: whether they run, what they publish, and what they tell; pure."""

from collections.abc import Mapping

from casaba.policy.diagnosis.cluster.installation import component, is_ready
from casaba.policy.diagnosis.cluster.nodes import labelled
from casaba.policy.diagnosis.cluster.observations import AgentMetrics, ClusterObservations, Objects
from casaba.policy.diagnosis.finding import (
    Check,
    Unanswered,
    Unseen,
    Verdict,
    both,
    check,
    count,
    few,
    lines,
    ok,
    skipped,
    unknown,
    wrong,
)
from casaba.policy.diagnosis.objects import Object, items, name, text, time_s
from casaba.policy.diagnosis.remedies import UNGUARDED
from casaba.settings.doctor import Names

AGENT = "node-agent"

EVENTS_OF_S = 3600.0
"""Older warnings of an agent are history."""


def judge_agents(seen: tuple[Objects, Objects, Objects, Names]) -> Verdict:
    """A ready agent on each labelled node."""
    nodes, pods, slices, names = seen
    chosen, agents = labelled(nodes, names), component(pods, AGENT)
    if not chosen:
        return skipped("no node is labelled")
    if not pods and slices:
        return skipped("cards are published, but no pod of casaba is there: agents run outside")
    there = {text(pod, "spec", "nodeName") for pod in agents}
    ready = {text(pod, "spec", "nodeName") for pod in agents if is_ready(pod)}
    if missing := [name(node) for node in chosen if name(node) not in there]:
        return wrong(
            f"no agent on {few(missing)}",
            "look at the DaemonSet: kubectl get ds -A -l app.kubernetes.io/component=node-agent; "
            "has the node a taint that it does not tolerate, or is casaba not installed? Where Pod "
            "Security refuses its pods (kubectl describe ds says so): kubectl label namespace "
            "NAMESPACE pod-security.kubernetes.io/enforce=privileged",
        )
    if unready := [name(node) for node in chosen if name(node) not in ready]:
        return wrong(
            f"the agent is not ready on {few(unready)}",
            "read why: kubectl logs of the pod on that node, and kubectl describe node",
        )
    return ok(f"an agent is ready on {count(len(chosen), 'node')}")


def judge_slices(seen: tuple[Objects, Objects, Names]) -> Verdict:
    """Each labelled node offers cards."""
    nodes, slices, names = seen
    if not (chosen := labelled(nodes, names)):
        return skipped("no node is labelled")
    cards: dict[str, int] = {}
    for slice_ in slices:
        node = text(slice_, "spec", "nodeName")
        cards[node] = cards.get(node, 0) + len(items(slice_, "spec", "devices"))
    absent = [name(node) for node in chosen if name(node) not in cards]
    empty = [name(node) for node in chosen if cards.get(name(node)) == 0]
    if absent or empty:
        told = [f"no slice of {few(absent)}"] * bool(absent)
        told += [f"no card in the slice of {few(empty)}"] * bool(empty)
        return wrong(
            "; ".join(told),
            "kubectl describe node says why in its events; then `casaba doctor --node` on the node",
        )
    total = sum(cards.get(name(node), 0) for node in chosen)
    return ok(f"{count(total, 'card')} of {count(len(chosen), 'node')}")


def judge_whole_cards(slices: Objects) -> Verdict:
    """A card without consumable capacity is given out whole."""
    whole = [
        f"{text(slice_, 'spec', 'nodeName')} {text(device, 'name')}"
        for slice_ in slices
        for device in items(slice_, "spec", "devices")
        if device.get("allowMultipleAllocations") is not True
    ]
    if not slices:
        return skipped("no slice is published")
    if whole:
        return wrong(
            f"published without consumable capacity: {few(whole)}",
            "is an older casaba or HAMi's own driver still there? Delete that slice; an agent of "
            "this release publishes only what the API server keeps",
        )
    return ok("every card can be shared")


def judge_problems(seen: tuple[Objects, Mapping[str, AgentMetrics], float]) -> Verdict:
    """What agents tell now in their metrics, else have told in events and not taken back."""
    events, agents, now_s = seen
    told = _told_in_events(events, now_s)
    current = {key: text_ for key, text_ in told.items() if key[0] not in agents}
    for node, one in agents.items():
        for reason in one.problems:
            current[node, reason] = told.get((node, reason), _WITHOUT_WORDS)
    if not current:
        return ok("no agent tells of a problem")
    problems = [f"{node}: {reason}: {words}" for (node, reason), words in sorted(current.items())]
    return wrong(
        lines(problems),
        "each of these sentences says what to do; when it is done, the agent tells so in another "
        "event of the Node",
    )


_WITHOUT_WORDS = "casaba smi on the node has the sentence"
"""Events are kept for an hour; a problem may be older."""


def _told_in_events(events: Objects, now_s: float) -> dict[tuple[str, str], str]:
    """Messages by node and reason: the last of each topic, if it is a warning."""
    latest: dict[tuple[str, str], tuple[float, Object]] = {}
    for event in events:
        at_s = time_s(text(event, "lastTimestamp") or text(event, "eventTime"))
        topic = _TOPICS.get(text(event, "reason"))
        if at_s is None or topic is None or now_s - at_s > EVENTS_OF_S:
            continue
        key = (text(event, "involvedObject", "name"), topic)
        if key not in latest or latest[key][0] <= at_s:
            latest[key] = (at_s, event)
    return {
        (node, text(event, "reason")): text(event, "message")
        for (node, _), (_, event) in latest.items()
        if text(event, "type") == "Warning"
    }


_TOPICS = {
    "DriverMissing": "driver",
    "DriverReady": "driver",
    "DriverChanged": "driver",
    "SliceFieldsDropped": "fields",
    "SliceFieldsKept": "fields",
    "DevicePluginOffersCards": "conflict",
    "HamiOffersCards": "conflict",
    "CardsPublished": "conflict",
    "DoorClosed": "door",
    "DoorOpen": "door",
}
"""What the agents' events are about: the last one of a topic counts."""


_Asked = tuple[Mapping[str, AgentMetrics | Unseen], bool]
"""Agents by node, and whether a NetworkPolicy may keep the API server from asking them."""


def judge_guards(asked: _Asked) -> Verdict:
    """Containers on a card whose processes have no guard: their limits don't hold."""
    agents, restricted = asked
    seen = [one for one in agents.values() if not isinstance(one, Unseen)]
    bare = sorted(container for one in seen for container in one.unguarded)
    if bare:
        return wrong(
            f"no guard is alive in {few(bare)}",
            UNGUARDED,
        )
    return _of_agents(agents, restricted, "every process on a card has its guard")


def judge_registration(asked: _Asked) -> Verdict:
    """Whether kubelets know the driver, as agents tell."""
    agents, restricted = asked
    told = {node: one for node, one in agents.items() if not isinstance(one, Unseen)}
    missing = [node for node, one in told.items() if not one.registered]
    if missing:
        return wrong(
            f"the kubelet has not registered the driver on {few(missing)}",
            "the agent's log has the kubelet's reason; does --kubelet-dir name its root folder?",
        )
    return _of_agents(agents, restricted, "kubelets have registered the driver")


def _of_agents(agents: Mapping[str, AgentMetrics | Unseen], restricted: bool, well: str) -> Verdict:
    if not agents:
        return skipped("no agent runs in a pod")
    unseen = {node: one for node, one in agents.items() if isinstance(one, Unseen)}
    if not unseen:
        return ok(well)
    node, first = next(iter(unseen.items()))
    told = f"{count(len(unseen), 'agent')} not asked ({node}: {first.reason})"
    if not all(isinstance(one, Unanswered) for one in unseen.values()):
        return unknown(told, f"run it as somebody who may get pods/proxy, or {_ON_THE_NODE}")
    if restricted:
        return skipped(f"{told}: {_SHUT_OUT}")
    return unknown(
        told,
        "does the agent run, and does a NetworkPolicy (the chart's with networkPolicy.metricsFrom, "
        f"or another) shut the API server out? If so, run {_ON_THE_NODE}",
    )


_ON_THE_NODE = "`casaba doctor --node` on the node"

_SHUT_OUT = "networkPolicy.metricsFrom lets only some ask, maybe not the API server"


def _asked(seen: ClusterObservations) -> _Asked | Unseen:
    return both(seen.agents, seen.metrics_restricted)


_ASK = "grant list on nodes, pods, resourceslices and deviceclasses to the one who runs this"


def _with_names(
    one: Objects | Unseen, other: Objects | Unseen, names: Names
) -> tuple[Objects, Objects, Names] | Unseen:
    seen = both(one, other)
    return seen if isinstance(seen, Unseen) else (*seen, names)


def _agents(
    seen: ClusterObservations,
) -> tuple[Objects, Objects, Objects, Names] | Unseen:
    nodes_and_pods, slices = both(seen.nodes, seen.pods), seen.slices
    if isinstance(nodes_and_pods, Unseen):
        return nodes_and_pods
    return slices if isinstance(slices, Unseen) else (*nodes_and_pods, slices, seen.names)


def _problems(
    seen: ClusterObservations,
) -> tuple[Objects, Mapping[str, AgentMetrics], float] | Unseen:
    agents = {} if isinstance(seen.agents, Unseen) else seen.agents
    asked = {node: one for node, one in agents.items() if not isinstance(one, Unseen)}
    if not isinstance(seen.events, Unseen):
        return seen.events, asked, seen.now_s
    return ((), asked, seen.now_s) if asked and len(asked) == len(agents) else seen.events


AGENTS: Check[ClusterObservations] = check(
    "parts.agents", "agents", _agents, judge_agents, advice=_ASK
)

SLICES: Check[ClusterObservations] = check(
    "parts.slices",
    "cards published",
    lambda seen: _with_names(seen.nodes, seen.slices, seen.names),
    judge_slices,
    advice=_ASK,
)

WHOLE_CARDS: Check[ClusterObservations] = check(
    "parts.sharing", "cards can be shared", lambda seen: seen.slices, judge_whole_cards, advice=_ASK
)

PROBLEMS: Check[ClusterObservations] = check(
    "parts.problems", "what agents tell", _problems, judge_problems, advice="grant list on events"
)

REGISTRATION: Check[ClusterObservations] = check(
    "parts.registration", "kubelets know the driver", _asked, judge_registration
)

GUARDS: Check[ClusterObservations] = check("parts.guards", "guards", _asked, judge_guards)
