"""CEL expressions of device selectors and webhooks, checked when they are written.

One that needs what is not evaluated here is refused, too, and says so.
"""

from casaba.policy.cel import (
    CelCompileError,
    CelTooComplex,
    check_selector,
    compiled_condition,
)
from casaba.simulation.api_server.validation.fields import Errors, forbidden, invalid, required


def selector_expression_errors(expression: str, path: str) -> Errors:
    """A device selector must compile to a bool and not cost too much."""
    try:
        check_selector(expression)
    except CelTooComplex:
        yield forbidden(path, "too complex, exceeds cost limit")
    except CelCompileError as error:
        yield invalid(path, expression, str(error))


def condition_expression_errors(expression: str, path: str) -> Errors:
    """A match condition must be there and compile to a bool."""
    if not expression.strip():
        yield required(path)
        return
    try:
        compiled_condition(expression)
    except CelCompileError as error:
        yield invalid(path, expression, str(error))
