"""Which taints of nodes a pod puts up with (Kubernetes, "Taints and Tolerations")."""

from collections.abc import Iterable

from casaba.simulation.workloads.objects import Taint, Toleration

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What a cordoned node counts as, even before a controller has tainted it."""

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration is for that taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations is for the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def keeps_away(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether a taint that is not tolerated forbids new pods."""
    tolerations = tuple(tolerations)
    return any(
        taint.effect in _KEEPS_AWAY and not is_tolerated(taint, tolerations) for taint in taints
    )
