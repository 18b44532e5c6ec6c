"""A lock per key that exists only while somebody wants it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class KeyedLocks(Generic[K]):
    """Serialises work of equal keys, first come first served; other keys don't wait."""

    def __init__(self) -> None:
        self._locks: dict[K, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, key: K) -> AsyncIterator[None]:
        """Hold the key's lock. If cancelled while waiting: it is not held."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)
