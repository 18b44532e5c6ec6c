"""Would a claim fit, where, and if not, why: the allocator of kube-scheduler, as a function.

`Allocator` takes one snapshot of a cluster (slices, classes, allocated claims) and answers for
one node at a time. The scheduler of the simulated cluster, the webhook's warnings and what-if
questions ask it. Held to the real kube-scheduler by `tests/conformance/allocator`.
"""

from casaba.policy.allocation.allocator import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    Allocator,
    FreeDevice,
    Room,
)
from casaba.policy.allocation.behaviour import (
    KUBERNETES_1_34,
    KUBERNETES_1_35,
    KUBERNETES_1_36,
    KUBERNETES_1_37,
    Behaviour,
)
from casaba.policy.allocation.nodes import CandidateNode, selects
from casaba.policy.allocation.outcome import (
    Allocated,
    AllocationFailed,
    ClassMissing,
    DeviceId,
    Reason,
    Refused,
)

__all__ = [
    "CANNOT_ALLOCATE",
    "INVALID_POOLS",
    "KUBERNETES_1_34",
    "KUBERNETES_1_35",
    "KUBERNETES_1_36",
    "KUBERNETES_1_37",
    "Allocated",
    "AllocationFailed",
    "Allocator",
    "Behaviour",
    "CandidateNode",
    "ClassMissing",
    "DeviceId",
    "FreeDevice",
    "Reason",
    "Refused",
    "Room",
    "selects",
]
