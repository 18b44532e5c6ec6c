"""Budgets whose use no guard measures, and what the card itself tells of it.

Where a budget has no cap and no other tenant has signed in to the card's schedule, its guard lets
launches go by unmeasured, which costs nothing (`is_metered` in native/guard/meter.c). All that the
card does then is this budget's, and NVML tells how busy the card is.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from casaba.model.card_reading import CardReading
from casaba.model.gpu_process import GpuProcess
from casaba.model.ids import GpuUuid
from casaba.model.usage import BudgetUsage
from casaba.wire.schedule_file import tenant_id

Tenants = Mapping[GpuUuid, frozenset[int]]
"""Ids of those who have signed in to the schedule of each card."""

Rates = Mapping[GpuUuid, float | None]
"""How busy each card is, 0 to 100; None where that is not known or not only tenants' doing."""


class LoneUse(Struct, frozen=True, kw_only=True):
    """A card on which nobody but one budget can launch, and that unmeasured."""

    present: bool
    """Whether the budget itself has a process that launched."""
    percent: float | None
    """How busy the card is; None: not known."""


def lone_uses(budget: BudgetUsage, tenants: Tenants, rates: Rates) -> tuple[LoneUse | None, ...]:
    """For each card of a budget; None where the guard measures, or would."""
    own = tenant_id(budget.claim, budget.request)
    found: list[LoneUse | None] = []
    for card in budget.policy.cards:
        signed_in = tenants.get(card.gpu, frozenset())
        if card.is_capped or signed_in - {own}:
            found.append(None)
        else:
            found.append(LoneUse(present=own in signed_in, percent=rates.get(card.gpu)))
    return tuple(found)


def card_rates(
    readings: Mapping[GpuUuid, CardReading],
    processes: Iterable[GpuProcess],
    bare: Iterable[GpuProcess],
) -> Rates:
    """What the cards tell, without those on which somebody launches past all guards."""
    strangers = {one.pid for one in processes if one.mounts is None} | {one.pid for one in bare}
    return {
        gpu: None if strangers.intersection(reading.pids) else reading.utilization_percent
        for gpu, reading in readings.items()
    }
