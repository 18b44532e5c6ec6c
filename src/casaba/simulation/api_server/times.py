"""Points in time as the API server reads and writes them (RFC 3339 by Go's layouts)."""

import re
from datetime import UTC, datetime, timedelta

SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_FORM = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


class NotATime(ValueError):
    """The text is no time; the message is the API server's."""


def canonical(text: str) -> str:
    """The time in UTC to the second, as metav1.Time. Raises NotATime."""
    return f"{_read(text, SECONDS_LAYOUT):%Y-%m-%dT%H:%M:%SZ}"


def canonical_micro(text: str) -> str:
    """The time in UTC with six digits of a second, as metav1.MicroTime. Raises NotATime."""
    match = _FORM.fullmatch(text)
    if match is None or len(match[2] or "") != 6:
        raise _refusal(text, MICRO_LAYOUT)
    return f"{_read(text, MICRO_LAYOUT):%Y-%m-%dT%H:%M:%S.%fZ}"


def written(moment: datetime) -> str:
    """A moment as objects carry it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _read(text: str, layout: str) -> datetime:
    match = _FORM.fullmatch(text)
    if match is None:
        raise _refusal(text, layout)
    try:
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError as error:
        raise _refusal(text, layout) from error
    moment = moment.replace(microsecond=int((match[2] or "0")[:6].ljust(6, "0")))
    if match[3]:
        offset = timedelta(hours=int(match[4]), minutes=int(match[5]))
        moment += -offset if match[3] == "+" else offset
    return moment


def _refusal(text: str, layout: str) -> NotATime:
    return NotATime(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
