"""The API server as JSON goes over the wire: any body, the status as it is, the warnings."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from typing import Any, NamedTuple

from tests.cluster.bed import Bed

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"

_TIMEOUT_S = 60.0
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

Object = dict[str, Any]


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: Object
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """The sentence of a refusal."""
        return str(self.body.get("message", ""))


class PlainApi:
    """Calls as the administrator, one after the other over one connection."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, content: Any = None, *, kind: str = JSON) -> Reply:
        """`content` is sent as JSON, or as it is if it is bytes."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        try:
            return self._exchange(method, path, body, kind)
        except (http.client.HTTPException, ConnectionError):
            # The server ends connections on which nothing was said for a while.
            self.close()
            return self._exchange(method, path, body, kind)

    def close(self) -> None:
        """The next call opens another connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, body: bytes, kind: str) -> Reply:
        if self._connection is None:
            self._connection = self._bed.api.connection(_TIMEOUT_S)
        self._connection.request(method, path, body, {"Content-Type": kind})
        response = self._connection.getresponse()
        told = response.headers.get_all("Warning") or []
        return Reply(response.status, _object(response.read()), tuple(map(_warning, told)))


def _object(content: bytes) -> Object:
    with contextlib.suppress(ValueError):
        found = json.loads(content)
        return found if isinstance(found, dict) else {"message": content.decode(errors="replace")}
    return {"message": content.decode(errors="replace")}


def _warning(header: str) -> str:
    """The text of one (RFC 7234, section 5.5), which http.client reads as Latin-1."""
    found = _WARNING.fullmatch(header.encode("latin-1").decode(errors="replace"))
    return re.sub(r"\\(.)", r"\1", found[1]) if found else header
