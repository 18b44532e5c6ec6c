"""Quantities in bodies: the text that is stored, or what the API server says of one that is none.

The arithmetic is `casaba.model.quantity`'s.
"""

import re

from casaba.errors import InvalidInput
from casaba.model.quantity import quantity

_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", re.ASCII)


class NotAQuantity(ValueError):
    """The text is no quantity; the message is the API server's."""


def canonical(text: str) -> str:
    """The same quantity as the server writes it: 1024Mi becomes 1Gi. Raises NotAQuantity."""
    try:
        return str(quantity(text))
    except InvalidInput:
        raise NotAQuantity(_why(text)) from None


def _why(text: str) -> str:
    match = re.fullmatch(_FORM.strip("^$"), text)
    if match is None:
        return f"quantities must match the regular expression '{_FORM}'"
    if _NUMBER.fullmatch(match[1]) is None:
        return "unable to parse numeric part of quantity"
    return "unable to parse quantity's suffix"
