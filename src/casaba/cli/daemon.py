"""What the daemons share: a log on stderr, spared memory, and signals that end them in order."""

import argparse
import asyncio
import asyncio.sslproto
import contextlib
import ctypes
import gc
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from casaba.cli.exits import exit_code_of
from casaba.cli.logs import log_to_stderr

_LEVELS = ("debug", "info", "warning", "error")

_GC_THRESHOLDS = (50_000, 50, 1000)
"""Long-lived objects are decoded once; looking for cycles in them costs more than it finds."""

_TLS_BUFFER_BYTES = 32 * 1024
"""Of each connection; asyncio's own is eight times that."""

_M_ARENA_MAX = -8
_ARENAS = 2
"""glibc's malloc keeps a heap per thread otherwise (mallopt(3))."""


def add_log_level(parser: argparse.ArgumentParser) -> None:
    """The flag that every daemon has."""
    parser.add_argument("--log-level", default="info", choices=_LEVELS)


def run_daemon(name: str, log_level: str, work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Do the work until it ends or SIGTERM or SIGINT cancels it; returns the exit code.

    `work` is called only here, so that bad flags that it finds end in a sentence.
    """
    log_to_stderr(log_level)
    _spare_memory()
    return exit_code_of(name, lambda: asyncio.run(_until_signal(work())))


def _spare_memory() -> None:
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work
