"""What a claim may say of its slice beside the amounts: opaque parameters of casaba.dev."""

from dataclasses import dataclass
from enum import StrEnum

API_VERSION = "casaba.dev/v1alpha1"
KIND = "SliceParameters"

HIGH_PRIORITY = 0
LOW_PRIORITY = 1


class CorePolicy(StrEnum):
    """What `cores` of a request means while the tenant runs (GPU_CORE_UTILIZATION_POLICY)."""

    DEFAULT = "default"
    """A cap, also while nobody else wants the card: a slice is as fast today as tomorrow."""
    FORCE = "force"
    """A cap, whatever `default` will come to mean."""
    DISABLE = "disable"
    """No cap: `cores` only says who goes first when several want the card."""


@dataclass(frozen=True, kw_only=True)
class SliceParameters:
    """What was said; None is what nobody said."""

    weight: int | None = None
    """Share of contended time, relative to other tenants of the card, 1 to 1000."""
    core_policy: CorePolicy | None = None
    priority: int | None = None
    """0: high, the weight counts ten times; 1: low, as without it (CUDA_TASK_PRIORITY)."""

    def overlaid(self, later: "SliceParameters") -> "SliceParameters":
        """These, with what a later entry of the configuration says instead, field by field."""
        return SliceParameters(
            weight=self.weight if later.weight is None else later.weight,
            core_policy=self.core_policy if later.core_policy is None else later.core_policy,
            priority=self.priority if later.priority is None else later.priority,
        )

    def as_object(self) -> dict[str, str | int]:
        """The object that goes into a claim's `opaque.parameters`."""
        written: dict[str, str | int] = {"apiVersion": API_VERSION, "kind": KIND}
        if self.weight is not None:
            written["weight"] = self.weight
        if self.core_policy is not None:
            written["corePolicy"] = self.core_policy.value
        if self.priority is not None:
            written["priority"] = self.priority
        return written


UNSAID = SliceParameters()
"""What applies where class and claim say nothing."""
