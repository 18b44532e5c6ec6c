"""What is allocated, as metrics: from slices, claims, pods and quotas to families of gauges; pure.

`account` joins them once; `hami_families` and the others only give names to what it found. The
name sets are HAMi's (scheduler, hami-dra-monitor, and the old names of both) and our own.

- Cards are those of the newest generation of each pool that is complete.
- A claim counts once for its card, however many pods share it, and is told of each of its pods
  and of each container that may use the request: never sum series of pods to get a card's total.
- Several shares of one card for one container or pod are one series, summed.
- `device_index` is the card's minor number.
- Ratios are 0 to 100 in the scheduler's set, but for `hami_node_gpu_memory_allocated_ratio`, and
  0 to 1 in hami-dra-monitor's set and ours, as documented there.
"""

from casaba.policy.allocation_metrics.account import Account, Card, Share, User, account
from casaba.policy.allocation_metrics.casaba_names import casaba_families
from casaba.policy.allocation_metrics.hami_dra_names import hami_dra_families, legacy_dra_families
from casaba.policy.allocation_metrics.hami_names import hami_families, legacy_scheduler_families
from casaba.policy.allocation_metrics.quotas import (
    Quota,
    QuotaLine,
    ResourceNames,
    quota_families,
    quota_lines,
)

__all__ = [
    "Account",
    "Card",
    "Quota",
    "QuotaLine",
    "ResourceNames",
    "Share",
    "User",
    "account",
    "casaba_families",
    "hami_dra_families",
    "hami_families",
    "legacy_dra_families",
    "legacy_scheduler_families",
    "quota_families",
    "quota_lines",
]
