"""Label selectors as the real server reads them, with its refusals.

Source: apimachinery, package `labels`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from casaba.simulation.api_server.statuses import bad_request, joined
from casaba.simulation.api_server.validation import names

Labels = Mapping[str, str]

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)?")
_SIGNS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_SPELLINGS = {">": "gt", "<": "lt"}
_END = ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        """Whether labels meet it; a missing label meets `!=` and `notin`."""
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!" | "!=" | "notin":
                return value is None or (self.operator != "!" and value not in self.values)
            case "gt" | "lt":
                return self._compares(value)
        return value is not None and value in self.values

    def _compares(self, value: str | None) -> bool:
        number, (bound,) = _int64(value), self.values
        if number is None:
            return False
        return number > int(bound) if self.operator == "gt" else number < int(bound)


def parsed_label_selector(text: str) -> Callable[[Labels], bool]:
    """The test that a `labelSelector` parameter asks for.

    Raises ApiError 400 for what is not a selector.
    """
    requirements = label_requirements(text)
    return lambda labels: all(requirement.matches(labels) for requirement in requirements)


def label_requirements(text: str) -> tuple[Requirement, ...]:
    """The conditions of a label selector, in the order written. Raises ApiError 400."""
    try:
        return tuple(_Parser(text).requirements())
    except _NotUnderstood as problem:
        raise bad_request(str(problem)) from None


class _NotUnderstood(Exception):
    """A selector that cannot be read; becomes a 400."""


class _Parser:
    """Recursive descent over the tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self._tokens = [token for token in _TOKEN.findall(text) if token]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        while (token := self._peek()) != _END:
            if token in _SIGNS and token != "!":
                raise _NotUnderstood(
                    f"found '{token}', expected: !, identifier, or 'end of string'"
                )
            try:
                yield self._requirement()
            except _NotUnderstood as problem:
                raise _NotUnderstood(f"unable to parse requirement: {problem}") from None
            self._separator()

    def _separator(self) -> None:
        token = self._next()
        if token == _END:
            return
        if token != ",":
            raise _NotUnderstood(f"found '{token}', expected: ',' or 'end of string'")
        after = self._peek()
        if after == _END or (after in _SIGNS and after != "!"):
            raise _NotUnderstood(f"found '{after}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key, negated = self._key()
        if negated or self._peek() in (_END, ","):
            return Requirement(key=key, operator="!" if negated else "exists")
        operator = self._operator()
        if operator in ("in", "notin"):
            values = self._set_of_values()
        else:
            values = frozenset({self._one_value()})
        _check_values(key, operator, values)
        return Requirement(key=key, operator=operator, values=values)

    def _key(self) -> tuple[str, bool]:
        token = self._next()
        negated = token == "!"
        if negated:
            token = self._next()
        if token == _END or token in _SIGNS:
            raise _NotUnderstood(f"found '{token}', expected: identifier")
        if wrong := list(names.qualified(token)):
            raise _NotUnderstood(f'<nil>: Invalid value: "{token}": {"; ".join(wrong)}')
        return token, negated

    def _operator(self) -> str:
        token = self._next()
        operator = _SPELLINGS.get(token, token)
        if operator not in _OPERATORS or token in _SPELLINGS.values():
            raise _NotUnderstood(f"found '{token}', expected: {', '.join(_OPERATORS)}")
        return operator

    def _one_value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        token = self._next()
        if token in _SIGNS:
            raise _NotUnderstood(f"found '{token}', expected: identifier")
        return token

    def _set_of_values(self) -> frozenset[str]:
        token = self._next()
        if token != "(":
            raise _NotUnderstood(f"found '{token}' expected: '('")
        first = self._peek()
        if first == _END or (first in _SIGNS and first not in (",", ")")):
            raise _NotUnderstood(f"found '{first}', expected: ',', ')' or identifier")
        return frozenset(self._listed())

    def _listed(self) -> Iterator[str]:
        """The values up to `)`; nothing between two commas is the empty value."""
        while True:
            if self._peek() in (",", ")"):
                yield ""
            else:
                yield self._listed_value()
            token = self._next()
            if token == ")":
                return

    def _listed_value(self) -> str:
        token = self._next()
        if token == _END or token in _SIGNS:
            raise _NotUnderstood(f"found '{token}', expected: ',', or identifier")
        after = self._peek()
        if after not in (",", ")"):
            raise _NotUnderstood(f"found '{after}', expected: ',' or ')'")
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _check_values(key: str, operator: str, values: frozenset[str]) -> None:
    problems = []
    for index, value in enumerate(sorted(values)):
        if operator in ("gt", "lt") and _int64(value) is None:
            problems.append(
                f"values[{index}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value "
                "must be an integer"
            )
        if wrong := list(names.label_value(value)):
            problems.append(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}')
    if problems:
        raise _NotUnderstood(joined(problems))


def _int64(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None
