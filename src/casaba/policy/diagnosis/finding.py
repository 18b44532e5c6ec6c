"""Findings, and the form of a check: a small function over one observation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

State = Literal["ok", "warning", "wrong", "unknown", "skipped"]
"""`warning` works, but not as one would expect; `unknown` could not be looked at; `skipped` does
not apply here."""

EXIT_WELL, EXIT_WRONG, EXIT_UNKNOWN = 0, 1, 3

O = TypeVar("O")  # noqa: E741 - observations
T = TypeVar("T")
U = TypeVar("U")

_TOLD = 10
"""So many nodes or pods are named in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found."""

    id: str
    """Stable, for programs: `cluster.version`."""
    title: str
    state: State
    seen: str
    """What is there, or why it could not be looked at."""
    advice: str = ""
    """What to do; never empty for what is wrong."""


@dataclass(frozen=True)
class Unseen:
    """Something that could not be looked at."""

    reason: str


@dataclass(frozen=True)
class Unanswered(Unseen):
    """Somebody was asked, and no answer came."""


NOT_ASKED = Unseen("it was not looked at")


@dataclass(frozen=True)
class Verdict:
    """A finding without its title."""

    state: State
    seen: str
    advice: str = ""


def ok(seen: str) -> Verdict:
    """As it should be."""
    return Verdict("ok", seen)


def wrong(seen: str, advice: str) -> Verdict:
    """Something does not work before somebody acts."""
    return Verdict("wrong", seen, advice)


def warning(seen: str, advice: str) -> Verdict:
    """Something works, but not as one would expect."""
    return Verdict("warning", seen, advice)


def unknown(seen: str, advice: str = "") -> Verdict:
    """It could not be found out, though it should have been."""
    return Verdict("unknown", seen, advice)


def skipped(seen: str) -> Verdict:
    """Nothing to find out here."""
    return Verdict("skipped", seen)


@dataclass(frozen=True, kw_only=True)
class Check(Generic[O]):
    """One row of a table of checks."""

    id: str
    title: str
    look: Callable[[O], Verdict]


def check(
    id: str,
    title: str,
    pick: Callable[[O], T | Unseen],
    judge: Callable[[T], Verdict],
    *,
    advice: str = "",
) -> Check[O]:
    """A check of what `pick` finds in the observations; what was not seen is unknown.

    `advice` says what to do then.
    """

    def look(observations: O) -> Verdict:
        picked = pick(observations)
        return unknown(picked.reason, advice) if isinstance(picked, Unseen) else judge(picked)

    return Check(id=id, title=title, look=look)


def both(one: T | Unseen, other: U | Unseen) -> tuple[T, U] | Unseen:
    """Two observations that only tell something together."""
    if isinstance(one, Unseen):
        return one
    return other if isinstance(other, Unseen) else (one, other)


def unless(reason: Callable[[O], str | None], *checks: Check[O]) -> tuple[Check[O], ...]:
    """Checks that are skipped where there is a reason."""

    def looking(one: Check[O]) -> Callable[[O], Verdict]:
        def look(observations: O) -> Verdict:
            why = reason(observations)
            return one.look(observations) if why is None else skipped(why)

        return look

    return tuple(Check(id=one.id, title=one.title, look=looking(one)) for one in checks)


def findings(checks: Iterable[Check[O]], observations: O) -> tuple[Finding, ...]:
    """What each check finds, in the table's order."""
    return tuple(_finding(one, one.look(observations)) for one in checks)


def _finding(check: Check[O], verdict: Verdict) -> Finding:
    return Finding(
        id=check.id,
        title=check.title,
        state=verdict.state,
        seen=verdict.seen,
        advice=verdict.advice,
    )


def few(names: Iterable[str], between: str = ", ") -> str:
    """The first of many names."""
    every = list(names)
    more = len(every) - _TOLD
    return between.join(every[:_TOLD]) + (f" and {more} more" if more > 0 else "")


def lines(sentences: Iterable[str]) -> str:
    """The first of many sentences, each in a line of its own."""
    return few(sentences, between="\n")


def count(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def exit_code(found: tuple[Finding, ...]) -> int:
    """1: something is wrong; 3: nothing is, but something could not be looked at; 0: all well."""
    states = {finding.state for finding in found}
    if "wrong" in states:
        return EXIT_WRONG
    return EXIT_UNKNOWN if "unknown" in states else EXIT_WELL
