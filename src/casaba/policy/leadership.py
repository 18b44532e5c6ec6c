"""Which pods carry the leader's label; pure.

The monitor's Service selects by it, so that what only the leader knows is found at one address,
and at none while there is no leader.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from casaba.wire.kubernetes import Pod

LEADS = "casaba.dev/leads"
"""Label of the leader's pod; the value is `true`."""

TRUE = "true"


@dataclass(frozen=True, kw_only=True)
class LabelPlan:
    """Pods to change."""

    give: tuple[Pod, ...] = ()
    take: tuple[Pod, ...] = ()


def plan_labels(pods: Iterable[Pod], namespace: str, leader: str) -> LabelPlan:
    """Only the pod `leader` of the namespace is to carry the label."""
    own = [pod for pod in pods if pod.metadata.namespace == namespace]
    return LabelPlan(
        give=tuple(pod for pod in own if pod.metadata.name == leader and not _is_labelled(pod)),
        take=tuple(pod for pod in own if pod.metadata.name != leader and _has_label(pod)),
    )


def _is_labelled(pod: Pod) -> bool:
    return pod.metadata.labels.get(LEADS) == TRUE


def _has_label(pod: Pod) -> bool:
    return LEADS in pod.metadata.labels
