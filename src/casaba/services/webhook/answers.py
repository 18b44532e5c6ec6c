"""What a review comes to."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from casaba.errors import CasabaError
from casaba.wire.admission import AdmissionRequest

TRY_AGAIN = "nothing was changed; try again in some seconds"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The request may pass."""

    patch: tuple[Mapping[str, Any], ...] = ()
    """Operations of a JSON Patch (RFC 6902)."""
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


class ReviewRefused(CasabaError):
    """The request may not pass; the message is for the user who made it."""

    def __init__(self, message: str, *, code: int, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        """What the client is told, as an HTTP status."""
        self.warnings = warnings


Judge = Callable[[AdmissionRequest], Awaitable[Answer]]
"""Answers one kind of review; raises ReviewRefused and BadReview."""


def expect_kind(request: AdmissionRequest, *kinds: str) -> None:
    """Raises ReviewRefused when a webhook configuration sends something else here."""
    if str(request.kind) not in kinds:
        raise ReviewRefused(
            f"this path judges {' and '.join(kinds)}, not {str(request.kind)[:80]!r}: "
            "correct the rules of the webhook configuration",
            code=400,
        )
