"""Takes casaba away: from a node its files, from a cluster what Helm did not make; pure.

    agent deleted ──► its pods gone ──► cleaner made ──► its pods ready ──► cleaner deleted

`next_step` goes by the cluster alone, so whoever is killed in between goes on where it was. A
cleaner beside an agent is one of an earlier uninstall: its pods are ready, but the agent has
written again since. So it goes before the agent does, and a cleaner without an agent is right.

A node whose kubelet does not answer is not waited for: edge nodes may be away for long, and an
uninstall must not hang on them. They are named, for `casaba node-clean` when they are back.
"""

from casaba.policy.removal.cluster import (
    AwaitCleaned,
    AwaitGone,
    Cleaned,
    ClusterSeen,
    CreateCleaner,
    Delete,
    Step,
    last_step,
    next_step,
)
from casaba.policy.removal.leftovers import Bare, is_made_template
from casaba.policy.removal.node import (
    ClaimsPrepared,
    NodeSeen,
    RemovalPlan,
    claim_uids,
    plan_removal,
)
from casaba.policy.removal.release import kept, uninstalled_with
from casaba.policy.removal.workloads import DaemonPod, DaemonSet, NodeState

__all__ = [
    "AwaitCleaned",
    "AwaitGone",
    "Bare",
    "ClaimsPrepared",
    "Cleaned",
    "ClusterSeen",
    "CreateCleaner",
    "DaemonPod",
    "DaemonSet",
    "Delete",
    "NodeSeen",
    "NodeState",
    "RemovalPlan",
    "Step",
    "claim_uids",
    "is_made_template",
    "kept",
    "last_step",
    "next_step",
    "plan_removal",
    "uninstalled_with",
]
