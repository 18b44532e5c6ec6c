"""Equal events are counted, many similar ones become one, and each object has a budget."""

from casaba.kube.event_correlation import (
    BURST,
    COMBINED,
    REFILL_PER_S,
    SIMILAR_AT_MOST,
    SIMILAR_WITHIN_S,
    About,
    EventCorrelator,
    Happening,
)


def about(name: str = "p") -> About:
    return About(api_version="v1", kind="Pod", namespace="n", name=name, uid="u")


def happening(message: str, name: str = "p", reason: str = "Failed", at: str = "1") -> Happening:
    return Happening(about=about(name), type="Warning", reason=reason, message=message, at=at)


def test_an_equal_event_is_counted_and_another_is_new() -> None:
    correlator = EventCorrelator()
    first = correlator.correlated(happening("x", at="1"), 0)
    again = correlator.correlated(happening("x", at="2"), 1)
    other = correlator.correlated(happening("y"), 1)
    assert first is again
    assert again is not None
    assert (again.count, again.happening.at, again.last_at) == (2, "1", "2")
    assert other is not first


def test_many_messages_of_one_reason_become_one_until_it_was_quiet() -> None:
    correlator = EventCorrelator()
    for number in range(SIMILAR_AT_MOST):
        told = correlator.correlated(happening(f"no {number}"), 0)
        assert told is not None
        assert told.happening.message == f"no {number}"
    combined = [correlator.correlated(happening(f"more {n}"), 1) for n in range(3)]
    assert combined[0] is combined[2]
    assert combined[2] is not None
    assert (combined[2].count, combined[2].happening.message) == (3, f"{COMBINED}more 2")
    elsewhere = correlator.correlated(happening("x", reason="Other"), 1)
    assert elsewhere is not None
    assert elsewhere.happening.message == "x"
    later = correlator.correlated(happening("after all"), SIMILAR_WITHIN_S + 2)
    assert later is not None
    assert later.happening.message == "after all"


def test_each_object_has_a_budget_that_refills() -> None:
    correlator = EventCorrelator()
    told = [correlator.correlated(happening("x"), 0) for _ in range(int(BURST) + 5)]
    assert [event is not None for event in told].count(True) == BURST
    assert correlator.correlated(happening("x", name="other"), 0) is not None
    assert correlator.correlated(happening("x"), 0.9 / REFILL_PER_S) is None
    after = correlator.correlated(happening("x"), 1.1 / REFILL_PER_S)
    assert after is not None
    assert after.count == BURST + 7
