"""Pages of one list are of one state, whatever is written between them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.listing import Page, page
from casaba.simulation.api_server.requests import ANONYMOUS, ResourceRequest
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.store import Store
from tests.unit.simulation.test_store import CONFIG_MAPS, Objects, state, write, writes


def listed(store: Store, **query: str) -> Page:
    """One page."""
    request = ResourceRequest(user=ANONYMOUS, verb="list", resource=CONFIG_MAPS, query=query)
    return page(store, request)


def objects_of(pages: list[Page]) -> Objects:
    """All objects of some pages; none may come twice."""
    items = [found for each in pages for found in each.items]
    assert [found.key for found in items] == sorted({found.key for found in items})
    return {found.key: found.object for found in items}


@given(writes, writes, st.integers(1, 4))
def test_pages_are_a_snapshot(before: list[Any], between: list[Any], limit: int) -> None:
    store = Store(log_limit=1000)
    for each in before:
        write(store, *each)
    expected = state(store)
    pages = [listed(store, limit=str(limit))]
    while pages[-1].continue_token:
        if between:
            write(store, *between.pop())
        token = pages[-1].continue_token
        pages.append(listed(store, **{"limit": str(limit), "continue": token}))
    assert objects_of(pages) == expected
    assert len({each.version for each in pages}) == 1
    assert pages[0].remaining in (None, len(expected) - limit)


def test_an_expired_token_comes_with_one_to_go_on_inconsistently() -> None:
    store = Store(log_limit=10)
    for name in "abc":
        write(store, "put", "n", name, {})
    first = listed(store, limit="1")
    write(store, "put", "n", "bb", {})
    store.compact()
    with pytest.raises(ApiError, match="too old to display a consistent list") as refused:
        listed(store, **{"limit": "1", "continue": first.continue_token})
    assert refused.value.code == 410
    token = refused.value.status["metadata"]["continue"]
    rest = listed(store, **{"continue": token})
    assert [found.key.name for found in rest.items] == ["b", "bb", "c"]


@pytest.mark.parametrize("token", ["abc", "e30", "eyJydiI6ImEifQ", "%%%", "bnVsbA"])
def test_a_token_of_nobody_is_a_bad_request(token: str) -> None:
    with pytest.raises(ApiError, match="continue key is not valid") as refused:
        listed(Store(log_limit=10), **{"continue": token})
    assert refused.value.code == 400


def test_an_exact_version_is_the_state_of_then() -> None:
    store = Store(log_limit=10)
    write(store, "put", "n", "a", {})
    version = str(store.version)
    write(store, "remove", "n", "a", {})
    then = listed(store, resourceVersion=version, resourceVersionMatch="Exact")
    assert [found.key.name for found in then.items] == ["a"]
    assert then.version == int(version)
    assert not listed(store, resourceVersion=version).items


def test_a_version_of_the_future_is_too_large() -> None:
    store = Store(log_limit=10)
    with pytest.raises(ApiError, match="Too large resource version: 9999, current:") as refused:
        listed(store, resourceVersion="9999")
    assert (refused.value.code, refused.value.retry_after_s) == (504, 1)
