"""Conditions over JSON objects, such as the match conditions of admission webhooks."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from casaba.policy.cel.environment import condition_checks, evaluation
from casaba.policy.cel.errors import CelCompileError
from casaba.policy.cel.expressions import checked, truth

ADMISSION_VARIABLES = ("object", "oldObject", "request", "namespaceObject")
"""What a webhook's condition may speak of; what is not given is null."""

_COMPILED_CONDITIONS = 256


class CompiledCondition:
    """A condition that can be asked about objects."""

    def __init__(self, expression: str) -> None:
        self._program = evaluation(ADMISSION_VARIABLES).compile(expression, disable_check=True)

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Raises CelRuntimeError, such as `no such key: x`."""
        return truth(self._program, {**dict.fromkeys(ADMISSION_VARIABLES), **variables})


@lru_cache(_COMPILED_CONDITIONS)
def compiled_condition(expression: str) -> CompiledCondition:
    """Raises CelCompileError, with the message of the API server."""
    syntax = checked(condition_checks(ADMISSION_VARIABLES), expression)
    kind = syntax.kinds.get(syntax.root.id, "dyn")
    if kind != "bool":
        raise CelCompileError(f"must evaluate to bool but got {kind}")
    return CompiledCondition(expression)
