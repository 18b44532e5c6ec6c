"""What went wrong with the bed, in words a person can act on."""

from __future__ import annotations


class BedError(Exception):
    """The bed cannot do what was asked; the message names the value and what to do next."""
