"""The chart grants what its programs ask for, and nothing else: by what the API servers of all
tests before this one were really asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chart.rendering import NAMESPACE, rendered
from tests.chart.rights import Grant, grants
from tests.cluster.audit import Call

FOLDER = Path(__file__).parent
PROGRAM = "casaba"
"""How the user agents of our own programs begin; tests use tokens under other names."""


@pytest.fixture(scope="module")
def granted() -> set[Grant]:
    return grants(rendered())


@pytest.fixture
def our_calls(recorded_calls: frozenset[Call]) -> set[Call]:
    """Of the chart's own programs, under the chart's accounts."""
    ours = {
        call
        for call in recorded_calls
        if call.account.startswith(f"{NAMESPACE}/") and call.program.startswith(PROGRAM)
    }
    if not ours:
        pytest.skip("no test before this one has installed the chart; run all of tests/e2e")
    return ours


def covers(grant: Grant, call: Call) -> bool:
    """Whether it is this grant that a call needs."""
    return (
        (grant.account, grant.verb, grant.group, grant.resource)
        == (call.account, call.verb, call.group, call.resource)
        and grant.namespace in ("", call.namespace)
        and grant.name in ("", call.name)
    )


def excuse(grant: Grant, used: Iterable[Grant]) -> str | None:
    """Why a grant stays that nothing asked for."""
    if grant.verb == "list":
        watches = (one for one in used if one.verb == "watch")
        same = (grant.account, grant.group, grant.resource, grant.namespace)
        if same in ((o.account, o.group, o.resource, o.namespace) for o in watches):
            return "an API server that can't stream the first list (WatchList off) is asked for it"
    return None


def was_unbound(call: Call, granted: set[Grant]) -> bool:
    """Helm takes rights away before the programs that have them end."""
    bindings = {one.binding for one in granted if one.account == call.account}
    return bool(bindings & call.unbound)


def was_granted_too(call: Call, calls: set[Call]) -> bool:
    """Whether it was allowed at another time: an API server that starts does not know any rights
    for a moment. Of a creation that is refused nobody learns the name."""
    granted = replace(call, refused=False, unbound=frozenset())
    return any(granted in (other, replace(other, name="")) for other in calls)


def test_nothing_is_refused(our_calls: set[Call], granted: set[Grant]) -> None:
    refused = [
        call
        for call in our_calls
        if call.refused and not was_unbound(call, granted) and not was_granted_too(call, our_calls)
    ]
    assert refused == []


def test_nothing_is_granted_that_is_not_asked_for(
    our_calls: set[Call], granted: set[Grant], request: pytest.FixtureRequest
) -> None:
    if missing := left_out(request.session):
        pytest.skip(f"only a run of all of tests/e2e asks for everything; not run: {missing}")
    used = {grant for grant in granted if any(covers(grant, call) for call in our_calls)}
    unused = sorted(one for one in granted - used if excuse(one, used) is None)
    assert [str(one) for one in unused] == []


def left_out(session: pytest.Session) -> str:
    """What of tests/e2e was not run, or has failed; empty if everything went well."""
    missing = set(FOLDER.rglob("test_*.py")) - {item.path for item in session.items}
    option = session.config.option
    reasons = [f"not {text}" for text in (option.keyword, option.markexpr) if text]
    reasons += [f"{session.testsfailed} failed tests"] if session.testsfailed else []
    return ", ".join([*sorted(path.name for path in missing), *reasons])
