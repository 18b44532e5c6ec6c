"""A node's agent: what it tells, its guards and its checkpoint; pure."""

from casaba.policy.diagnosis.finding import (
    Check,
    Verdict,
    check,
    count,
    few,
    lines,
    ok,
    warning,
    wrong,
)
from casaba.policy.diagnosis.host.observations import (
    AS_ROOT,
    CheckpointSeen,
    GuardSeen,
    HostObservations,
)
from casaba.policy.diagnosis.remedies import UNGUARDED
from casaba.wire.node_report import NodeReport


def judge_agent(report: NodeReport) -> Verdict:
    """The agent's own word."""
    if report.problems:
        told = [f"{problem.reason}: {problem.message}" for problem in report.problems]
        return wrong(lines(told), "each sentence says what to do")
    if not report.registered:
        return wrong(
            "the kubelet has not registered the driver",
            "the agent's log has the kubelet's reason",
        )
    return ok(f"casaba {report.release} serves {count(len(report.use.gpus), 'card')}")


def judge_guards(report: NodeReport) -> Verdict:
    """Processes on cards that have no guard."""
    bare = [
        f"{one.namespace}/{one.name.pod} {one.name.container} ({one.unguarded})"
        for one in report.use.guards
        if one.unguarded
    ]
    if bare:
        return wrong(
            f"processes on a card without a guard: {few(bare)}",
            UNGUARDED,
        )
    if foreign := sum(report.use.foreign.values()):
        return warning(
            f"processes on the cards that no slice limits: {foreign}",
            "nvidia-smi names them; what they use was promised to claims",
        )
    return ok("every process on a card has its guard")


def judge_guard_files(guard: GuardSeen) -> Verdict:
    """Containers get library and preload file from there."""
    if guard.broken:
        return wrong(
            f"incomplete guards in {guard.folder}: {few(guard.broken)}",
            "remove those folders and start the agent again; no pod that runs uses them",
        )
    if not guard.whole:
        return wrong(f"no guard in {guard.folder}", "start the agent, which puts it there")
    return ok(f"{few(guard.whole)} in {guard.folder}")


def judge_checkpoint(seen: CheckpointSeen) -> Verdict:
    """What the agent finds after a restart."""
    if seen.unreadable:
        return wrong(seen.unreadable, f"mend the permissions or the disk below {seen.folder}")
    if seen.damaged:
        return warning(
            f"damaged entries in {seen.folder}: {few(seen.damaged)}",
            "delete them when the pods of these claims have gone; a pod of theirs that does not "
            "start has to be deleted and made again",
        )
    return ok(f"{count(seen.entries, 'prepared claim')}")


AGENT: Check[HostObservations] = check(
    "node.agent",
    "agent",
    lambda seen: seen.agent,
    judge_agent,
    advice="is the agent running on this node? kubectl get pods -A -o wide "
    "-l app.kubernetes.io/component=node-agent. Its socket is for root alone",
)
GUARDS: Check[HostObservations] = check(
    "node.guards", "guards", lambda seen: seen.agent, judge_guards, advice="see the agent"
)
GUARD_FILES: Check[HostObservations] = check(
    "node.guard-files",
    "guard on the host",
    lambda seen: seen.guard,
    judge_guard_files,
    advice=AS_ROOT,
)
CHECKPOINT: Check[HostObservations] = check(
    "node.checkpoint",
    "checkpoint",
    lambda seen: seen.checkpoint,
    judge_checkpoint,
    advice=AS_ROOT,
)
