"""Times as objects spell them (metav1.Time and MicroTime)."""

from datetime import UTC, datetime


def spelt(moment: datetime) -> str:
    """In UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> str:
    """The wall clock."""
    return spelt(datetime.now(UTC))


def parsed(text: str) -> datetime:
    """
    Raises:
        ValueError: it is no time.
    """
    return datetime.fromisoformat(text)
