"""Totals that only grow, and utilisation, whatever guards, cards and tenants tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from casaba.model.usage import BudgetUsage
from casaba.policy.lone_use import LoneUse
from casaba.policy.usage_history import UsageHistory
from tests.unit.policy.usages import KEY, SECOND_NS, budget, damaged, process, reading

IDLE_CARD = LoneUse(present=True, percent=0)
BUSY_CARD = LoneUse(present=True, percent=80)
SILENT_CARD = LoneUse(present=True, percent=None)


def begun() -> UsageHistory:
    """One to which all budgets are new."""
    history = UsageHistory()
    history.observe(reading(0))
    return history


def busy_s(history: UsageHistory) -> float:
    """The total of the only card."""
    total_ns = history.busy_ns(KEY, 0)
    assert total_ns is not None
    return total_ns / SECOND_NS


def used(seconds: float, cores: int = 50, *, region_id: int = 7) -> BudgetUsage:
    return budget(process(), busy_ns=int(seconds * SECOND_NS), cores=cores, region_id=region_id)


def test_utilisation_is_the_mean_since_the_last_reading_that_is_old_enough() -> None:
    history = begun()
    for second, busy in ((1, 0), (11, 5), (12, 6), (13, 7), (17, 11)):
        history.observe(reading(second, used(busy)))
        if second == 11:
            assert history.card_percent(KEY, 0) == 50.0
    assert history.card_percent(KEY, 0) == 100.0  # since second 12
    history.observe(reading(20))
    assert history.card_percent(KEY, 0) is None
    assert history.busy_ns(KEY, 0) is None


def test_readings_that_are_not_told_leave_the_window_as_it_is() -> None:
    history = begun()
    history.observe(reading(1, used(0)))
    for second in range(2, 21):
        history.follow(reading(second, used(second - 1)))
    history.observe(reading(21, used(19)))
    assert history.card_percent(KEY, 0) == pytest.approx(95)  # 19 of 20 seconds


def test_what_the_guard_takes_back_was_never_told() -> None:
    """It charges ahead by an estimate, and corrects it by what it measured."""
    history = begun()
    told = []
    for second, busy in enumerate((1.0, 1.5, 1.2, 1.4, 1.6, 1.55), start=1):
        history.observe(reading(second, used(busy)))
        told.append(busy_s(history))
    assert told == [1.0, 1.5, 1.5, 1.5, 1.6, 1.6]


def test_a_region_that_is_made_anew_begins_at_what_it_says() -> None:
    history = begun()
    history.observe(reading(1, used(100, region_id=1)))
    history.observe(reading(2, used(3, region_id=2)))
    assert busy_s(history) == 3


@pytest.mark.parametrize("cores", [0, 100])
def test_alone_without_a_cap_the_card_tells_what_is_used(cores: int) -> None:
    history = begun()
    for second in range(1, 12):
        history.observe(reading(second, used(0, cores), lone=BUSY_CARD))
    assert busy_s(history) == pytest.approx(8)
    assert history.card_percent(KEY, 0) == pytest.approx(80)


@pytest.mark.parametrize("cores", [0, 100])
def test_a_neighbour_that_comes_and_goes_takes_nothing_back(cores: int) -> None:
    """While it is there the guard measures: half of the card for each."""
    history = begun()
    measured, told = 0.0, []
    for second in range(1, 41):
        alone = second // 10 % 2 == 0
        measured += 0 if alone else 0.5
        lone = BUSY_CARD if alone else None
        history.observe(reading(second, used(measured, cores), lone=lone))
        told.append(busy_s(history))
    assert told == sorted(told)
    # 18 whole seconds alone; of 2 on the border nobody knows all
    assert told[-1] == pytest.approx(18 * 0.8 + measured, abs=1.6)


def test_the_first_and_the_last_moments_of_a_process_alone_count() -> None:
    gone = LoneUse(present=False, percent=80)
    history = begun()
    for second, lone in enumerate((gone, BUSY_CARD, gone, gone), start=1):
        history.observe(reading(second, used(0, 0), lone=lone))
    assert busy_s(history) == pytest.approx(1.6)


def test_who_is_alone_and_idle_is_told_as_idle() -> None:
    history = begun()
    for second in range(1, 5):
        history.observe(reading(second, used(0, 0), lone=IDLE_CARD))
    assert (busy_s(history), history.card_percent(KEY, 0)) == (0, 0)


def test_where_neither_guard_nor_card_tells_it_is_not_known() -> None:
    history = begun()
    for second, lone in enumerate((BUSY_CARD, BUSY_CARD, SILENT_CARD, SILENT_CARD), start=1):
        history.observe(reading(second, used(0, 0), lone=lone))
    assert history.card_percent(KEY, 0) is None
    assert busy_s(history) == pytest.approx(0.8)


def test_a_history_that_begins_later_counts_from_zero_what_no_region_tells_whole() -> None:
    """Or what was used alone before it would look like new use of a counter that was reset."""
    history = UsageHistory()
    before = budget(process(launches=70), busy_ns=5 * SECOND_NS, cores=0)
    history.observe(reading(1, before))
    assert (busy_s(history), history.launches(KEY)) == (0, 0)
    history.observe(reading(2, budget(process(launches=80), busy_ns=6 * SECOND_NS, cores=0)))
    assert (busy_s(history), history.launches(KEY)) == (1, 10)
    history.observe(reading(3, budget(busy_ns=6 * SECOND_NS, cores=0)))
    assert history.launches(KEY) == 10


def test_of_a_capped_budget_the_region_tells_all_of_it() -> None:
    history = UsageHistory()
    history.observe(reading(1, used(5)))
    assert busy_s(history) == 5


def test_utilisation_is_told_at_once_of_who_never_used_the_card_or_is_alone() -> None:
    for usage, lone, percent in (
        (used(0), None, 0.0),
        (used(5), None, None),
        (used(0, 0), BUSY_CARD, 80.0),
        (used(0, 0), SILENT_CARD, None),
    ):
        history = begun()
        history.observe(reading(1, usage, lone=lone))
        assert history.card_percent(KEY, 0) == percent


@pytest.mark.parametrize("lost", ["unread", "damaged"])
def test_one_reading_that_fails_loses_nothing(lost: str) -> None:
    history = begun()
    usage = budget(process(launches=70), busy_ns=3600 * SECOND_NS)
    history.observe(reading(1, usage))
    history.observe(reading(2, budget(process(pid=9, slot=1), busy_ns=3600 * SECOND_NS)))
    missing = reading(20, unread=[KEY]) if lost == "unread" else reading(20, damaged())
    history.observe(missing)
    assert history.card_percent(KEY, 0) is None
    assert history.knows(KEY)
    history.observe(reading(40, usage))
    assert busy_s(history) == 3600
    assert history.launches(KEY) == 140


def test_a_budget_that_was_never_read_is_not_known() -> None:
    history = begun()
    history.observe(reading(1, damaged()))
    history.observe(reading(2, unread=[KEY]))
    assert not history.knows(KEY)
    assert history.busy_ns(KEY, 0) is None


def test_launches_of_ended_processes_stay_and_a_slot_that_is_taken_again_is_anothers() -> None:
    history = begun()
    history.observe(reading(1, budget(process(1, launches=10), process(2, launches=1, slot=1))))
    history.observe(reading(2, budget(process(1, launches=30, started_ns=5))))
    assert history.launches(KEY) == 41


def test_containers_that_share_a_budget_each_have_a_first_process() -> None:
    history = begun()
    for launches in ((10, 1000), (20, 1001), (30, 1002)):
        processes = [process(1, launches=count, slot=at) for at, count in enumerate(launches)]
        history.observe(reading(launches[0], budget(*processes)))
    assert history.launches(KEY) == 1032


words = st.integers(0, 2**64 - 1)
lone_uses = st.none() | st.builds(
    LoneUse, present=st.booleans(), percent=st.none() | st.integers(0, 100)
)
steps = st.tuples(words, words, lone_uses, st.sampled_from(["read", "unread", "damaged"]))


@given(st.lists(steps, min_size=1, max_size=12), st.sampled_from([0, 50, 100]))
def test_whatever_is_told_stays_in_its_range_and_totals_only_grow(
    told: list[tuple[int, int, LoneUse | None, str]], cores: int
) -> None:
    history = begun()
    before = (0, 0)
    for second, (busy_ns, launches, lone, state) in enumerate(told, start=1):
        usage = budget(process(launches=launches), busy_ns=busy_ns, cores=cores)
        if state == "damaged":
            usage = structs.replace(usage, processes=(), times=(), damaged=True)
        unread = [KEY] if state == "unread" else []
        budgets = [] if state == "unread" else [usage]
        observe = history.follow if second % 3 == 0 else history.observe
        observe(reading(second, *budgets, lone=lone, unread=unread))
        percent = history.card_percent(KEY, 0)
        assert percent is None or 0 <= percent <= 100
        now = (history.busy_ns(KEY, 0) or 0, history.launches(KEY))
        assert now[0] >= before[0]
        assert now[1] >= before[1]
        before = now
