"""The decision."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime

from casaba.policy.collection.templates import MadeTemplate, TemplateName


@dataclass(frozen=True, kw_only=True)
class CollectionPlan:
    """What may go now, and when there may be more."""

    delete: tuple[MadeTemplate, ...] = ()
    """To be deleted in exactly this version."""
    look_again_in_s: float | None = None
    """When the next unused template is due; None if none waits."""


def plan_collection(
    templates: Iterable[MadeTemplate],
    in_use: Container[TemplateName],
    now: datetime,
    *,
    period_s: float,
    settle_s: float,
) -> CollectionPlan:
    """The plan for the time `now`, which has a zone; see the package for the rules."""
    delete: list[MadeTemplate] = []
    waits_s: list[float] = []
    for template in templates:
        if template.name in in_use or not template.name.is_of_content:
            continue
        wait_s = _due_in_s(template, now, period_s, settle_s)
        if wait_s <= 0:
            delete.append(template)
        else:
            waits_s.append(wait_s)
    return CollectionPlan(delete=tuple(delete), look_again_in_s=min(waits_s, default=None))


def _due_in_s(template: MadeTemplate, now: datetime, period_s: float, settle_s: float) -> float:
    settled_in_s = settle_s - template.known_for_s
    return max(period_s - _unused_s(template, now, period_s), settled_in_s)


def _unused_s(template: MadeTemplate, now: datetime, period_s: float) -> float:
    """Since the last use; a stamp from beyond a period ahead says nothing, one nearer counts."""
    if template.used_at is None:
        return template.known_for_s
    unused_s = (now - template.used_at).total_seconds()
    return unused_s if unused_s >= -period_s else template.known_for_s
