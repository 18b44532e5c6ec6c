"""The controller, and the clocks that its Lease and all certificates depend on; pure."""

from casaba.policy.diagnosis.cluster.installation import component
from casaba.policy.diagnosis.cluster.observations import (
    Canary,
    ClusterObservations,
    Objects,
)
from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    few,
    ok,
    skipped,
    wrong,
)
from casaba.policy.diagnosis.objects import (
    Object,
    full_name,
    name,
    text,
    time_s,
)

CLOCKS_DIFFER_S = 5.0
LEASE_LATE_S = 60.0
"""A leader renews each few seconds."""


def judge_controller(seen: tuple[Object | None, Objects, float]) -> Verdict:
    """Somebody holds the Lease and renews it."""
    lease, pods, now_s = seen
    controllers = component(pods, "controller")
    if lease is None and not controllers:
        return skipped("no controller is installed")
    if lease is None:
        return wrong("no controller has taken the Lease", _CONTROLLER)
    holder = text(lease, "spec", "holderIdentity")
    renewed_s = time_s(text(lease, "spec", "renewTime"))
    if not holder or renewed_s is None:
        return wrong(f"nobody holds the Lease {full_name(lease)}", _CONTROLLER)
    if (age_s := now_s - renewed_s) > LEASE_LATE_S:
        return wrong(f"{holder} renewed its Lease {age_s:.0f} s ago", _CONTROLLER)
    return ok(f"{holder} leads")


_CONTROLLER = (
    "kubectl logs of its pods says why: kubectl get pods -A "
    "-l app.kubernetes.io/component=controller; until then templates pile up and certificates age"
)


def judge_clocks(seen: tuple[Canary, Objects]) -> Verdict:
    """Clocks that differ break certificates, leases and tokens."""
    canary, leases = seen
    if canary.server_s is None:
        return skipped("the API server's clock was not seen")
    before_s, after_s = canary.local_before_s, canary.local_after_s
    apart_s = max(before_s - (canary.server_s + 1), canary.server_s - after_s, 0.0)
    if apart_s > CLOCKS_DIFFER_S:
        return wrong(
            f"the API server's clock and this one differ by {apart_s:.0f} s",
            "have both set by NTP (chrony or systemd-timesyncd)",
        )
    ahead = [
        f"{name(lease)} ({renewed_s - canary.server_s:.0f} s)"
        for lease in leases
        if (renewed_s := time_s(text(lease, "spec", "renewTime"))) is not None
        and renewed_s - canary.server_s > CLOCKS_DIFFER_S + after_s - before_s
    ]
    if ahead:
        return wrong(
            f"clocks of nodes are ahead: {few(ahead)}",
            "have them set by NTP (chrony or systemd-timesyncd)",
        )
    return ok("the API server's clock and this one agree")


def _controller(seen: ClusterObservations) -> tuple[Object | None, Objects, float] | Unseen:
    found = both(seen.lease, seen.pods)
    return found if isinstance(found, Unseen) else (*found, seen.now_s)


def _clocks(seen: ClusterObservations) -> tuple[Canary, Objects] | Unseen:
    leases = () if isinstance(seen.node_leases, Unseen) else seen.node_leases
    return both(seen.canary, leases)


CONTROLLER: Check[ClusterObservations] = check(
    "controller.leader",
    "controller",
    _controller,
    judge_controller,
    advice="grant get on leases and list on pods",
)
CLOCKS: Check[ClusterObservations] = check("cluster.clocks", "clocks", _clocks, judge_clocks)
