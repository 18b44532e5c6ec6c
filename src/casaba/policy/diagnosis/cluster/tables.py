"""The tables of checks of a cluster, each in the order in which one would look."""

from casaba.policy.diagnosis.cluster import (
    agents,
    certificates,
    control_plane,
    controller,
    installation,
    nodes,
    rivals,
    trial,
    webhook,
)
from casaba.policy.diagnosis.cluster.control_plane import without_resource_api
from casaba.policy.diagnosis.cluster.installation import not_installed
from casaba.policy.diagnosis.cluster.observations import ClusterObservations
from casaba.policy.diagnosis.cluster.uninstall import uninstall_checks
from casaba.policy.diagnosis.finding import Check, Finding, findings, unless
from casaba.settings.uninstall import HelmRelease

_Checks = tuple[Check[ClusterObservations], ...]

_PREREQUISITES: _Checks = (
    control_plane.VERSION,
    control_plane.RESOURCE_API,
    *unless(without_resource_api, control_plane.GATE_OF_SERVER),
    nodes.LABELS,
    rivals.CONFLICTS,
    nodes.KUBELETS,
    nodes.RUNTIMES,
)

_PARTS: _Checks = (
    *unless(
        without_resource_api,
        installation.DEVICE_CLASS,
        agents.AGENTS,
        agents.SLICES,
        agents.WHOLE_CARDS,
    ),
    agents.PROBLEMS,
    agents.REGISTRATION,
    agents.GUARDS,
    webhook.CONFIGURATION,
    webhook.REPLICAS,
    certificates.CERTIFICATES,
    certificates.CERT_MANAGER,
    trial.TRIAL,
    controller.CONTROLLER,
)

CLUSTER_CHECKS: _Checks = (
    *_PREREQUISITES,
    *unless(
        without_resource_api,
        control_plane.GATE_OF_SCHEDULER,
        control_plane.MANY_CARDS,
        rivals.EXTENDED_RESOURCE,
        installation.RELEASES,
    ),
    rivals.OLD_WEBHOOK,
    *unless(not_installed, *_PARTS),
    controller.CLOCKS,
)

PREINSTALL_CHECKS: _Checks = (
    *_PREREQUISITES,
    *unless(without_resource_api, rivals.SAME_DRIVER, rivals.EXTENDED_RESOURCE),
)
"""Before there is anything of casaba; needs few rights."""


def diagnose_cluster(seen: ClusterObservations) -> tuple[Finding, ...]:
    """A cluster in which casaba is, or should be."""
    return findings(CLUSTER_CHECKS, seen)


def diagnose_version(seen: ClusterObservations) -> tuple[Finding, ...]:
    """All that can be said where nobody answers."""
    return findings((control_plane.VERSION,), seen)


def diagnose_preinstall(seen: ClusterObservations) -> tuple[Finding, ...]:
    """A cluster in which casaba is to be installed."""
    return findings(PREINSTALL_CHECKS, seen)


def diagnose_uninstall(
    seen: ClusterObservations, release: HelmRelease, *, by_force: bool
) -> tuple[Finding, ...]:
    """A cluster from which casaba is to be removed."""
    return findings(uninstall_checks(release, by_force=by_force), seen)
