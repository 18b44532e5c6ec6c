"""Forms that cases of whole devices have in common."""

from typing import Any

from tests.conformance.allocator.building import (
    DRIVER,
    Json,
    claim,
    counters,
    device,
    exactly,
    gpu_class,
    nic_class,
    slice_,
    uses,
)
from tests.conformance.allocator.case import Case, Outcome

ATTRIBUTES = f"device.attributes['{DRIVER}']"


def gpus(*names: str, **fields: Any) -> list[Json]:
    return [device(name, attributes={"index": int(name[-1])}, **fields) for name in names]


def one(
    name: str,
    outcome: Outcome,
    *slices: Json,
    claims: list[Json] | None = None,
    classes: list[Json] | None = None,
    holders: list[Json] | None = None,
    alone: bool = False,
) -> Case:
    """On one node; a class for all devices and a claim for one, unless others are given."""
    return Case(
        name=name,
        slices=list(slices) if slices else [slice_(*gpus("g0", "g1", "g2"))],
        classes=classes or [gpu_class(), nic_class()],
        claims=claims or [claim(exactly())],
        holders=holders or [],
        expected={"a": outcome},
        alone=alone,
    )


def taint(effect: str = "NoSchedule", key: str = "broken.example.com", value: str = "") -> Json:
    made = {"key": key, "effect": effect}
    return {**made, "value": value} if value else made


def partitions(*devices: Json, parts: str = "4") -> list[Json]:
    """A pool of a card with counters, and its partitions."""
    return [
        slice_(
            name="0-counters",
            count=2,
            sharedCounters=[{"name": "card", "counters": counters(parts=parts)}],
        ),
        slice_(*devices, name="1-devices", count=2),
    ]


def part(name: str, parts: str) -> Json:
    return device(name, consumesCounters=uses("card", parts=parts))


def linked(**numa: int) -> Json:
    return slice_(
        *(device(name, attributes={"numa": value, "name": name}) for name, value in numa.items())
    )
