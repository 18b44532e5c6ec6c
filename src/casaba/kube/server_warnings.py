"""What the server warns of, told once each (RFC 9111 5.5, KEP-1693)."""

import logging
import re
from collections.abc import Iterable

log = logging.getLogger(__name__)

MAX_REMEMBERED = 1000
"""Some warnings name an object, so that there is no end of them."""

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def warning_texts(header: str) -> tuple[str, ...]:
    """The texts of all warnings of code 299 in one header."""
    return tuple(_ESCAPED.sub(r"\1", text) for text in _WARNING.findall(header))


class ServerWarnings:
    """Logs each text the first time that it is heard."""

    def __init__(self) -> None:
        self._heard: set[str] = set()

    def hear(self, headers: Iterable[str], asked: str) -> None:
        """Take the values of an answer's Warning headers."""
        for header in headers:
            for text in warning_texts(header):
                if text not in self._heard and len(self._heard) < MAX_REMEMBERED:
                    self._heard.add(text)
                    log.warning("kube.server_warns", extra={"asked": asked, "warning": text})
