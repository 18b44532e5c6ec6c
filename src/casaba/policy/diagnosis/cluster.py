"""The tables of checks of a cluster, each in the order in which one would look."""

from casaba.policy.diagnosis import controller, nodes, parts, prerequisites, webhook
from casaba.policy.diagnosis.finding import Check, Finding, findings
from casaba.policy.diagnosis.observations import ClusterObservations
from casaba.policy.diagnosis.uninstall import uninstall_checks

PREREQUISITES: tuple[Check[ClusterObservations], ...] = (
    prerequisites.VERSION,
    prerequisites.RESOURCE_API,
    prerequisites.GATE_OF_SERVER,
    nodes.LABELS,
    nodes.CONFLICTS,
    nodes.KUBELETS,
    nodes.RUNTIMES,
)

CLUSTER_CHECKS: tuple[Check[ClusterObservations], ...] = (
    *PREREQUISITES,
    prerequisites.GATE_OF_SCHEDULER,
    prerequisites.MANY_CARDS,
    prerequisites.EXTENDED_RESOURCE,
    parts.RELEASES,
    parts.DEVICE_CLASS,
    parts.AGENTS,
    parts.SLICES,
    parts.WHOLE_CARDS,
    parts.PROBLEMS,
    parts.REGISTRATION,
    parts.GUARDS,
    webhook.CONFIGURATION,
    webhook.REPLICAS,
    webhook.AUTHORITIES,
    webhook.CERT_MANAGER,
    webhook.TRIAL,
    webhook.OLD_WEBHOOK,
    controller.CONTROLLER,
    controller.CLOCKS,
)

PREINSTALL_CHECKS: tuple[Check[ClusterObservations], ...] = (
    *PREREQUISITES,
    prerequisites.SAME_DRIVER,
    prerequisites.EXTENDED_RESOURCE,
)
"""Before there is anything of casaba; needs few rights."""


def diagnose_cluster(seen: ClusterObservations) -> tuple[Finding, ...]:
    """A cluster in which casaba is, or should be."""
    return findings(CLUSTER_CHECKS, seen)


def diagnose_version(seen: ClusterObservations) -> tuple[Finding, ...]:
    """All that can be said where nobody answers."""
    return findings((prerequisites.VERSION,), seen)


def diagnose_preinstall(seen: ClusterObservations) -> tuple[Finding, ...]:
    """A cluster in which casaba is to be installed."""
    return findings(PREINSTALL_CHECKS, seen)


def diagnose_uninstall(seen: ClusterObservations, *, by_force: bool) -> tuple[Finding, ...]:
    """A cluster from which casaba is to be removed."""
    return findings(uninstall_checks(by_force=by_force), seen)
