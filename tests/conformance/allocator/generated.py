"""Small clusters and claims made up by chance, the same for the same number."""

from collections.abc import Callable
from random import Random

from tests.conformance.allocator.building import (
    DRIVER,
    GPU_CLASS,
    NIC_CLASS,
    OTHER_DRIVER,
    UNIVERSE,
    ZONE_LABEL,
    Json,
    amount,
    claim,
    counters,
    device,
    distinct,
    exactly,
    first_of,
    gpu_class,
    held,
    holder,
    label,
    match,
    nic_class,
    node,
    slice_,
    sub,
    uses,
    where,
)
from tests.conformance.allocator.case import Case

CLUSTERS = 200
"""As many as are compared with the real scheduler."""

_POLICIES: tuple[Callable[[], Json | str], ...] = (
    lambda: "8Gi",
    lambda: amount("8Gi", "1Gi", min="1Gi", step="512Mi"),
    lambda: amount("8Gi", "2Gi", min="512Mi", max="6Gi"),
    lambda: amount("8Gi", "1Gi", valid_values=["1Gi", "2Gi", "4Gi"]),
    lambda: amount("8Gi", "512Mi"),
)
_MEMORY = ("100Mi", "1Gi", "1500Mi", "2Gi", "3Gi", "4Gi", "5Gi", "8Gi", "1.5Gi", "2e9", "3G")
_EXPRESSIONS = (
    f"device.attributes['{DRIVER}'].numa == 0",
    f"device.attributes['{DRIVER}'].index > 1",
    f"device.attributes['{DRIVER}'].?link.orValue('none') == 'x'",
    f"has(device.attributes['{DRIVER}'].link)",
    f"device.capacity['{DRIVER}'].?memory.orValue(quantity('0')).isGreaterThan(quantity('4Gi'))",
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    f"device.attributes['{DRIVER}'].link == 'x'",
)


class _Maker:
    """One cluster in the making."""

    def __init__(self, number: int) -> None:
        self._chance = Random(number)
        self._devices: list[tuple[str, Json]] = []
        """With the name of the pool."""

    def case(self, number: int) -> Case:
        slices = self._slices()
        return Case(
            name=f"generated {number}",
            slices=slices,
            classes=[
                gpu_class(*self._some(_EXPRESSIONS, 0.1)),
                nic_class(),
            ],
            holders=self._holders(),
            claims=[self._claim(name) for name in "cd"[: self._chance.choice((1, 1, 2))]],
            nodes=[node("a", rack="r1"), node("b", rack="r2")],
            expected={},
        )

    def _likely(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _some(self, of: tuple[str, ...], probability: float) -> tuple[str, ...]:
        return (self._chance.choice(of),) if self._likely(probability) else ()

    def _slices(self) -> list[Json]:
        slices: list[Json] = []
        for pool in "pqr"[: self._chance.randint(1, 3)]:
            slices += self._pool(pool)
        if self._likely(0.3):
            nics = (device(f"n{index}") for index in range(2))
            slices.append(slice_(*nics, name="n", pool="n", driver=OTHER_DRIVER))
        return slices

    def _pool(self, pool: str) -> list[Json]:
        place = self._place()
        with_counters = self._likely(0.25)
        parts = self._chance.randint(1, 2)
        # Counters are looked at from everywhere: a pool with them must not be incomplete, or
        # the claims of other cases for all devices would fail.
        told = parts + (1 if with_counters or self._likely(0.05) else 0)
        common: Json = {"pool": pool, "count": told, "generation": 2, **place}
        slices = [
            slice_(
                *(self._device(pool, with_counters) for _ in range(self._chance.randint(1, 3))),
                name=f"{pool}{part}",
                **common,
            )
            for part in self._chance.sample(range(9), parts)
        ]
        if with_counters:
            shared = [{"name": "card", "counters": counters(parts="4")}]
            slices.append(slice_(name=f"{pool}-counters", sharedCounters=shared, **common))
        if self._likely(0.1):
            old = slice_(device("old"), name=f"{pool}-old", **{**common, "generation": 1})
            slices.append(old)
        return slices

    def _place(self) -> Json:
        """For node a, for both, or for those with a label."""
        choice = self._chance.random()
        if choice < 0.4:
            return {"on": "a"}
        own = label(ZONE_LABEL, "In", UNIVERSE)
        if choice < 0.8:
            return {"on": None, "nodeSelector": where(own)}
        rack = label("rack", self._chance.choice(("In", "NotIn")), "r1")
        return {"on": None, "nodeSelector": where(own, rack)}

    def _device(self, pool: str, with_counters: bool) -> Json:
        index = len(self._devices)
        shared = self._likely(0.6)
        capacity: Json = {}
        if self._likely(0.85):
            capacity["memory"] = self._chance.choice(_POLICIES)() if shared else "8Gi"
        if shared and self._likely(0.5):
            capacity["cores"] = amount("100", "10", min="0", step="5")
        attributes: Json = {"index": index, "numa": self._chance.randint(0, 1)}
        if self._likely(0.5):
            attributes["link"] = self._chance.choice("xy")
        fields: Json = {}
        if self._likely(0.15):
            fields["taints"] = [
                {"key": "t.example.com", "effect": self._chance.choice(("NoSchedule", "None"))}
            ]
        if with_counters:
            fields["consumesCounters"] = uses("card", parts=str(self._chance.randint(1, 3)))
        made = device(f"g{index}", capacity, shared=shared, attributes=attributes, **fields)
        self._devices.append((pool, made))
        return made

    def _holders(self) -> list[Json]:
        return [
            holder(f"h{number}", self._held(number, pool, made))
            for number, (pool, made) in enumerate(self._devices)
            if self._likely(0.15)
        ]

    def _held(self, number: int, pool: str, made: Json) -> Json:
        if not made.get("allowMultipleAllocations"):
            return held(made["name"], pool=pool, admin=self._likely(0.2))
        amounts: Json = {
            name: self._chance.choice(("20", "55") if name == "cores" else ("1Gi", "3Gi", "6Gi"))
            for name in made.get("capacity", {})
        }
        return held(made["name"], pool=pool, share=number, **amounts)

    def _claim(self, name: str) -> Json:
        names = ("one", "two", "three")[: self._chance.choice((1, 1, 1, 2, 3))]
        requests = [self._request(request) for request in names]
        constraints = []
        if self._likely(0.3):
            kind = self._chance.choice((match, distinct))
            attribute = self._chance.choice(("numa", "numa", "index", "link"))
            constraints.append(kind(attribute, *(names[:2] if self._likely(0.3) else ())))
        return claim(*requests, name=name, constraints=constraints)

    def _request(self, name: str) -> Json:
        if self._likely(0.2):
            return first_of(name, *(sub(other, **self._wishes(sub=True)) for other in "ab"))
        return exactly(name, **self._wishes(sub=False))

    def _wishes(self, *, sub: bool) -> Json:
        wishes: Json = {"of": NIC_CLASS if self._likely(0.05) else GPU_CLASS}
        wishes["cel"] = self._some(_EXPRESSIONS, 0.3)
        if self._likely(0.1):
            wishes["every"] = True
        else:
            wishes["count"] = self._chance.choice((1, 1, 1, 1, 2))
        if self._likely(0.5):
            wishes["memory"] = self._chance.choice(_MEMORY)
        if self._likely(0.15):
            wishes["cores"] = self._chance.choice(("0", "7", "50", "99"))
        if self._likely(0.2):
            wishes["tolerate"] = [{"operator": "Exists"}]
        if not sub and self._likely(0.05):
            wishes["admin"] = True
        return wishes


def generated(number: int) -> Case:
    """The case of this number, with nodes `a` and `b` and nothing expected."""
    return _Maker(number).case(number)
