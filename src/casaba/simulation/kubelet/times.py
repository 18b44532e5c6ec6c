"""Times as the API spells them."""

from datetime import UTC, datetime


def now() -> str:
    """The time in whole seconds (metav1.Time)."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def now_micro() -> str:
    """The time with microseconds (metav1.MicroTime)."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
