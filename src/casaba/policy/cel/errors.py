"""What can be wrong with an expression."""

from casaba.errors import InvalidInput


class CelCompileError(InvalidInput):
    """The expression is wrong; the message is the API server's, with the position."""


class CelUnsupported(CelCompileError):
    """The expression may be right, but it needs something that is not evaluated here."""


class CelTooComplex(InvalidInput):
    """The expression could cost more than the API server allows."""


class CelRuntimeError(InvalidInput):
    """The expression failed on a value, as Kubernetes' evaluation would."""


class CelMissingKey(CelRuntimeError):
    """A map has no such key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no such key: {key}")
        self.key = key
