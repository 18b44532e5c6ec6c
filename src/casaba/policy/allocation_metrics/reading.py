"""Values of objects; a metric must not fail because one object is odd."""

from casaba.errors import InvalidInput
from casaba.model.quantity import parse


def amount(text: str | None) -> int:
    """A quantity as a whole number; 0 for none, and for what is no quantity or negative."""
    try:
        return max(0, parse(text)) if text else 0
    except InvalidInput:
        return 0
