"""Our Kubernetes client beside the `kubernetes` package: a list of 1300 pods, and a flood of news.

Server and clients are processes of their own; the clients are fresh ones.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.bench.figures import Figure

FIGURES = ("list_1300_pods_ms", "list_1300_pods_own_ms", "client_pss", "watch_events_per_s")

_PROGRAMS = "tests.bench.programs"
_LISTS = 7
_WATCHES = 3
"""The best counts: the server is as busy as the client, and others take what they like."""
_EVENTS = 60_000
_TIMEOUT_S = 300


def measure() -> Iterator[Figure]:
    """All figures of the client."""
    with _pod_server() as url:
        ours, theirs = (_listed(which, url) for which in ("casaba", "kubernetes"))
        own_ms, their_ms = (statistics.median(told["ms"]) for told in (ours, theirs))
        rate = max(float(_output("watch_pods", url, str(_EVENTS))) for _ in range(_WATCHES))
    pss = ours["pss_kib"] / theirs["pss_kib"]
    yield Figure(name="list_1300_pods_ms", value=own_ms / their_ms, unit="ratio", bound=0.1)
    yield Figure(name="list_1300_pods_own_ms", value=own_ms, unit="ms", bound=150)
    yield Figure(name="client_pss", value=pss, unit="ratio", bound=0.4)
    yield Figure(
        name="watch_events_per_s", value=rate, unit="events/s", bound=50_000, better="higher"
    )


@contextmanager
def _pod_server() -> Iterator[str]:
    command = [sys.executable, "-m", f"{_PROGRAMS}.pod_server", str(_EVENTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _listed(which: str, url: str) -> Any:
    told = json.loads(_output("list_pods", which, url, str(_LISTS)))
    if told["pods"] != 1300:
        raise RuntimeError(f"{which} got {told['pods']} of 1300 pods")
    return told


def _output(program: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"{_PROGRAMS}.{program}", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=_TIMEOUT_S
    )
    return done.stdout
