"""Answers become objects, or an error that says which answer and what was wrong in it."""

import logging
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from casaba.kube.cache import Named
from casaba.kube.errors import Undecodable
from casaba.kube.resources import Resource
from casaba.wire.kubernetes import Identified, WatchedObject
from casaba.wire.watch_stream import ChangeDecoder

T = TypeVar("T")

log = logging.getLogger(__name__)


def decoded(body: bytes | msgspec.Raw, form: type[T], asked: str) -> T:
    """JSON as `form`; `asked` names verb and path. Raises Undecodable."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.DecodeError as error:
        raise Undecodable(f"{asked}: the answer is not understood: {error}") from error


class ObjectDecoder(Generic[T]):
    """Objects of one resource with their identities.

    One that this version can't read must not stop the others: it is None, and a line in the log.
    """

    def __init__(self, resource: Resource[T], asked: str) -> None:
        """`asked` names verb and path."""
        self._plural = resource.plural
        self._asked = asked
        self._decoder = msgspec.json.Decoder(resource.form)
        self._changes = ChangeDecoder(resource.form)

    def one(self, raw: msgspec.Raw) -> tuple[Named, T | None]:
        """One object; raises Undecodable if not even its identity can be read."""
        identity = self.identity(raw)
        try:
            return identity, self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            log.error(
                "kube.object_not_understood",
                extra={
                    "resource": self._plural,
                    "object": f"{identity.namespace}/{identity.name}",
                    "error": str(error),
                },
            )
            return identity, None

    def several(self, items: Iterable[msgspec.Raw]) -> Iterator[tuple[Named, T | None]]:
        """The objects of a list; raises Undecodable."""
        return map(self.one, items)

    def identity(self, raw: msgspec.Raw) -> Named:
        """Only who it is; raises Undecodable."""
        return decoded(raw, Identified, self._asked).metadata

    def changes(self, lines: bytes) -> list[WatchedObject[T]] | None:
        """Lines of a watch at once, fast; None if they have to be looked at one by one."""
        return self._changes.decode(lines)
