"""When fields were written, as managedFields tell."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.field_times import field_written_at, object_written_at
from tests.unit.managed import entry

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PATH = ("metadata", "annotations", "example.com/a.b")

Entry = dict[str, Any]


def written(*entries: Entry) -> tuple[datetime | None, datetime | None]:
    node = {"metadata": {"managedFields": list(entries)}}
    return field_written_at(node, *PATH), object_written_at(node)


def test_the_owner_of_a_field_tells_when_it_was_written() -> None:
    other = entry(NOON, "status", "capacity")
    assert written(entry(NOON - timedelta(hours=1), *PATH), other) == (
        NOON - timedelta(hours=1),
        NOON,
    )


def test_of_several_owners_the_last_one_counts() -> None:
    early, late = NOON - timedelta(hours=1), NOON - timedelta(minutes=1)
    assert written(entry(late, *PATH), entry(early, *PATH)) == (late, late)


def test_a_field_of_another_name_is_not_taken_for_it() -> None:
    for other in (("metadata", "labels", PATH[-1]), (*PATH[:-1], "example.com/a"), PATH[:-1]):
        assert written(entry(NOON, *other)) == (None, NOON)


def test_without_entries_nothing_is_told() -> None:
    assert written() == (None, None)
    assert object_written_at({}) is None
    assert field_written_at({"metadata": None}, *PATH) is None


def test_what_is_odd_is_left_out() -> None:
    for time in (None, 5, "", "yesterday", "2026-12-01T12:00:00", "2026-13-01T12:00:00Z"):
        odd = entry(NOON, *PATH) | {"time": time}
        assert written(odd, entry(NOON, "x")) == (None, NOON)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["time", "fieldsV1", "f:metadata", "f:annotations", "manager"])
TIMES = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)


@given(st.lists(st.dictionaries(KEYS, VALUES | TIMES, max_size=4) | VALUES, max_size=4) | VALUES)
def test_whatever_the_entries_look_like_they_are_read(entries: Any) -> None:
    node = {"metadata": {"managedFields": entries}}
    at, last = field_written_at(node, *PATH), object_written_at(node)
    assert at is None or (last is not None and at <= last)
