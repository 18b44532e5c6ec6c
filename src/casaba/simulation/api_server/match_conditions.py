"""The CEL conditions of webhooks (KEP 3716) over `object`, `oldObject` and `request`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.policy.cel import CelCompileError, CelRuntimeError, compiled_condition


@dataclass(frozen=True, kw_only=True)
class Matched:
    """What conditions come to: a match, no match, or neither because of errors."""

    matches: bool
    errors: tuple[str, ...] = ()


def matched(conditions: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> Matched:
    """Whether all conditions hold. One that does not outweighs errors in others."""
    errors = []
    for condition in conditions:
        expression = condition["expression"]
        try:
            if not compiled_condition(expression).holds(variables):
                return Matched(matches=False)
        except (CelCompileError, CelRuntimeError) as error:
            errors.append(f"expression '{expression}' resulted in error: {error}")
    return Matched(matches=not errors, errors=tuple(errors))
