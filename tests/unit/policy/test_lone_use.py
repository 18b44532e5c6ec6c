"""When a guard measures nothing, by the same rule as the guard's own, and what the card says."""

import pytest

from casaba.model.card_reading import CardReading
from casaba.policy.lone_use import LoneUse, card_rates, lone_uses
from casaba.wire.schedule_file import tenant_id
from tests.unit.policy.usages import KEY, budget, mounts_of, on_card, process
from tests.unit.values import A10

OWN, OTHER = tenant_id(*KEY), tenant_id("another", "gpu")
TENANT = on_card(100, 1, mounts_of("main", "gpu"))
FOREIGN = on_card(101, 101, None)


@pytest.mark.parametrize("cores", [0, 100])
@pytest.mark.parametrize(
    ("signed_in", "use"),
    [
        ({OWN}, LoneUse(present=True, percent=60)),
        (set(), LoneUse(present=False, percent=60)),
        ({OWN, OTHER}, None),
        ({OTHER}, None),
    ],
)
def test_who_has_no_cap_is_measured_only_beside_others(
    cores: int, signed_in: set[int], use: LoneUse | None
) -> None:
    tenants = {A10.uuid: frozenset(signed_in)}
    assert lone_uses(budget(process(), cores=cores), tenants, {A10.uuid: 60}) == (use,)


@pytest.mark.parametrize("cores", [1, 99])
def test_a_cap_is_always_measured(cores: int) -> None:
    tenants = {A10.uuid: frozenset({OWN})}
    assert lone_uses(budget(process(), cores=cores), tenants, {A10.uuid: 60}) == (None,)


def test_a_card_that_says_nothing_and_one_with_strangers_have_no_rate() -> None:
    def rates(pids: list[int], percent: int | None = 60) -> float | None:
        card = CardReading(gpu=A10.uuid, utilization_percent=percent, pids=tuple(pids))
        bare = [on_card(102, 9, mounts_of("main", "gpu"))]
        return card_rates({A10.uuid: card}, [TENANT, FOREIGN, *bare], bare)[A10.uuid]

    assert rates([100]) == 60
    assert rates([]) == 60
    assert rates([100, 99]) == 60  # it has just ended
    assert rates([100], None) is None
    assert rates([100, 101]) is None
    assert rates([102]) is None
    uses = lone_uses(budget(process(), cores=0), {A10.uuid: frozenset({OWN})}, {})
    assert uses == (LoneUse(present=True, percent=None),)
