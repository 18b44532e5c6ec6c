"""Whatever a program does, the region holds the sum of what it has."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.native.guard.machine import CARDS, MIB, Budget, Machine
from tests.native.guard.tenant import SUCCESS, Tenant

FIRST, SECOND = 3 * MIB, 5 * MIB
SIZES = st.one_of(st.integers(1, 2 * MIB), st.sampled_from([FIRST, SECOND, FIRST + SECOND]))
STEPS = st.lists(
    st.one_of(st.tuples(st.just("alloc"), SIZES), st.tuples(st.just("free"), st.integers(0, 20))),
    max_size=25,
)


@pytest.fixture
def budgets(machine: Machine) -> list[Budget]:
    """Two on one card."""
    return [
        machine.budget({CARDS[0]: FIRST}, claim="a"),
        machine.budget({CARDS[0]: SECOND}, claim="b"),
    ]


@pytest.fixture
def tenant(machine: Machine, budgets: list[Budget]) -> Iterator[Tenant]:
    """A process with a context."""
    with machine.tenant() as started:
        started.start()
        yield started


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_the_account_is_the_sum_of_what_is_held(
    tenant: Tenant, budgets: list[Budget], steps: list[tuple[str, int]]
) -> None:
    held: list[tuple[int, int]] = []
    for deed, number in steps:
        if deed == "alloc":
            fits = sum(size for _, size in held) + number <= FIRST + SECOND
            address = tenant.alloc(number)
            assert (address is not None) == fits
            if address is not None:
                held.append((address, number))
        elif held:
            address, _ = held.pop(number % len(held))
            assert tenant.free(address) == SUCCESS
        charged = [budget.usage()[0].asked_bytes for budget in budgets]
        assert sum(charged) == sum(size for _, size in held)
        assert charged[0] <= FIRST
        assert charged[1] <= SECOND
    for address, _ in held:
        assert tenant.free(address) == SUCCESS
