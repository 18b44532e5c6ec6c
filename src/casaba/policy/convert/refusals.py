"""How a pod is refused, and how values of it are shown."""

import json
from typing import Any

from casaba.errors import CasabaError

MALFORMED = 400
FORBIDDEN = 403
UNPROCESSABLE = 422

_SHOWN_CHARACTERS = 48
_WARNING_CHARACTERS = 250


class PodRefused(CasabaError):
    """A pod that can't be converted; the message is one sentence with the fix."""

    def __init__(self, message: str, *, code: int = UNPROCESSABLE) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status of the answer: 400, 403 or 422."""


def shown(value: Any) -> str:
    """A value for a message, short and on one line."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return "a number of too many digits"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return cut(json.dumps(value))


def cut(text: str) -> str:
    """A text, or the start of a long one."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def warning(text: str) -> str:
    """A warning that the API server passes on whole: it may cut at 256 characters."""
    return text if len(text) <= _WARNING_CHARACTERS else f"{text[: _WARNING_CHARACTERS - 1]}…"
