"""Bearer tokens, which in a pod are replaced about every hour while we run."""

import time
from collections.abc import Callable
from pathlib import Path

from casaba.kube.config import KubeConfig
from casaba.kube.errors import KubeConfigError

REREAD_AFTER_S = 60.0
"""A token is at most this old, as in client-go."""


class TokenSource:
    """The token to send now; from a file it is read anew when that changes and each minute."""

    def __init__(self, config: KubeConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = config.token_file
        self._origin = config.origin
        self._clock = clock
        self._token = config.token
        self._modified_ns = 0
        self._read_at_s = clock()
        if self._path:
            self._read_first(self._path)

    def current(self) -> str | None:
        """The token, or None where the identity is a certificate."""
        if self._path and self._is_due(self._path):
            self._read(self._path)
        return self._token

    def refused(self) -> bool:
        """Read again after a 401; true if the token is a new one, worth another try."""
        before = self._token
        if self._path:
            self._read(self._path)
        return self._token != before

    def _is_due(self, path: Path) -> bool:
        if self._clock() - self._read_at_s >= REREAD_AFTER_S:
            return True
        try:
            return path.stat().st_mtime_ns != self._modified_ns
        except OSError:
            return False

    def _read_first(self, path: Path) -> None:
        if not self._read(path):
            raise KubeConfigError(f"{self._origin}: token file {path} is empty or can't be read")

    def _read(self, path: Path) -> bool:
        """Keep the last good token when the file is away for a moment."""
        self._read_at_s = self._clock()
        try:
            modified_ns = path.stat().st_mtime_ns
            token = path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return False
        self._modified_ns = modified_ns
        if token:
            self._token = token
        return bool(token)
