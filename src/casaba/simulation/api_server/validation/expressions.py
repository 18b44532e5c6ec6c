"""CEL expressions of device selectors, checked as the API server does when they are written."""

from casaba.policy.cel import CelCompileError, CelTooComplex, check_selector
from casaba.simulation.api_server.validation.fields import Errors, forbidden, invalid


def expression_errors(expression: str, path: str) -> Errors:
    """The expression must compile to a bool and not cost too much.

    One that needs what is not evaluated here is refused, too, and says so.
    """
    try:
        check_selector(expression)
    except CelTooComplex:
        yield forbidden(path, "too complex, exceeds cost limit")
    except CelCompileError as error:
        yield invalid(path, expression, str(error))
