"""Something that people must know of a running part."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is wrong, and what to do."""

    reason: str
    """One CamelWord: an event's reason, a label's value."""
    message: str
