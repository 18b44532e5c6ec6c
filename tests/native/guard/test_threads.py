"""Many threads at once, watched by the sanitizers."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.native.guard.machine import CARDS, MIB, Machine

LIMIT = 16 * MIB
SANITIZERS = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"]}
Compile = Callable[..., Path]


def test_threads_share_the_limit(
    machine: Machine, compile_c: Compile, driver: Path, sanitized_guard: Path
) -> None:
    """Both budgets of the card are used, also by split blocks."""
    budgets = [machine.budget({CARDS[0]: LIMIT}, claim=c, context_size=MIB) for c in "ab"]
    program = compile_c(
        "racer.c",
        *SANITIZERS[sanitized_guard.parent.name],
        f"-Wl,-rpath,{sanitized_guard.parent}",
        sanitized_guard,
        driver / "libcuda.so.1",
        "-pthread",
    )
    done = subprocess.run(
        [program, "1500", "6", str(LIMIT // 2)],
        env=machine.environment(guarded=False),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    granted, refused = map(int, done.stdout.split())
    assert granted > 100
    assert refused > 0
    for budget in budgets:
        (usage,) = budget.usage()
        assert (usage.asked_bytes, usage.overhead_bytes) == (0, 0)
