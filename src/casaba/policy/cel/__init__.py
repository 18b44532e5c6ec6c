"""Kubernetes' Common Expression Language, as far as cel-cpp (cel-expr-python) goes.

Selectors of devices and conditions over JSON objects. Where evaluation would differ from
Kubernetes' the expression is refused as unsupported: functions on URLs and IP addresses, named
formats, authorizer calls and comprehensions with two variables.
"""

from casaba.policy.cel.conditions import CompiledCondition, compiled_condition
from casaba.policy.cel.errors import (
    CelCompileError,
    CelRuntimeError,
    CelTooComplex,
    CelUnsupported,
)
from casaba.policy.cel.selectors import CompiledSelector, check_selector, compiled_selector

__all__ = [
    "CelCompileError",
    "CelRuntimeError",
    "CelTooComplex",
    "CelUnsupported",
    "CompiledCondition",
    "CompiledSelector",
    "check_selector",
    "compiled_condition",
    "compiled_selector",
]
