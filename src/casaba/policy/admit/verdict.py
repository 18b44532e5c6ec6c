"""What comes out of judging a claim."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Sentences for the person who wrote the claim, each after the path of its field."""

    refusals: tuple[str, ...] = ()
    """What can never work, and what is allowed."""
    warnings: tuple[str, ...] = ()
    """What will be taken otherwise than it is written, or can't be had now."""

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(
            refusals=self.refusals + other.refusals, warnings=self.warnings + other.warnings
        )


def shown(value: object) -> str:
    """A value of the claim in a sentence, cut where it is long."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


_SHOWN_CHARACTERS = 100
