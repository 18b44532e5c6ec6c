"""Shares of a card's time, in the virtual card's own account; what the guard adds to a launch."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from casaba.model.ids import GpuUuid
from casaba.model.limits import CardLimits, Policy
from casaba.wire.policy_file import build_policy
from casaba.wire.region_file import build_region
from tests.bench.figures import Figure
from tests.native.compute.shared_card import NATIVE, ROOT, Busy, Claim, SharedCard

FIGURES = (
    "share_error",
    "share_sd",
    "two_tenants",
    "share_settle_s",
    "lone_tenant",
    "launch_nolimit_floors",
    "launch_cap_floors",
)
TARGETS = (10, 25, 50, 75, 90)
KERNELS = ("5us", "50us", "200us", "1ms", "10ms")
MODES = ("async", "graph", "sync")
PAIRS = ((50, 50), (25, 50), (10, 90))
MIXED = "200us,1ms,10ms,500us,5ms"
WARM_S, WINDOW_S, WINDOWS, UNCAPPED_S, PAIR_S = 0.6, 0.25, 8, 0.5, 5.0
STEP_S, STEADY_S, STEADY_POINTS, SETTLE_LIMIT_S = 0.1, 1.0, 5.0, 3.0
LONE_ROUNDS, FLOOR_ROUNDS = 5, 5
SHARE_ERROR, SHARE_SD, PAIR_ERROR = 2.0, 3.0, 2.0
STUB_CARD = GpuUuid("GPU-00000000-0000-0000-0000-000000000001")
PROGRAMS = Path(__file__).with_name("programs")


def measure() -> Iterator[Figure]:
    """All figures of compute; the matrix takes some minutes and wants a quiet machine: a program
    that waits for each of its launches gets less whenever something else runs.
    """
    with scratch() as folder:
        card = SharedCard(folder)
        points = [
            point for mode in MODES for kernel in KERNELS for point in row(card, mode, kernel)
        ]
        worst = max(points, key=lambda point: abs(point.error))
        yield points_figure("share_error", abs(worst.error), bound=SHARE_ERROR)
        yield points_figure("share_sd", max(point.sd for point in points), bound=SHARE_SD)
        errors = [pair_error(card, *pair) for pair in PAIRS]
        yield points_figure("two_tenants", max(errors), bound=PAIR_ERROR)
        yield Figure(name="share_settle_s", value=max(settle_times(card)), unit="s", bound=1)
        lone = min(lone_ratio(card, "200us", "async"), lone_ratio(card, "50us", "sync"))
        yield Figure(name="lone_tenant", value=lone, unit="ratio", bound=0.98, better="higher")
    yield from floor_figures()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="casaba-bench-") as name:
        yield Path(name)


def points_figure(name: str, value: float, *, bound: float) -> Figure:
    """A figure in points of the card's time."""
    return Figure(name=name, value=value, unit="points", bound=bound)


@dataclass(frozen=True)
class Point:
    """One cell of the matrix."""

    mode: str
    kernel: str
    target: int
    error: float
    """Mean share less the smaller of target and uncapped share, in points."""
    sd: float
    """Of windows of WINDOW_S, in points."""


_numbers = iter(range(1_000_000))


def new_claim(card: SharedCard, cores: int) -> Claim:
    """A tenant that nobody has used yet."""
    return card.claim(f"t{next(_numbers)}", cores)


def row(card: SharedCard, mode: str, kernel: str) -> Iterator[Point]:
    """All targets of one kernel and mode; the uncapped share is measured before and behind each."""
    before = uncapped(card, mode, kernel)
    for target in TARGETS:
        point, before = measure_point(card, mode, kernel, target, before)
        yield point


def measure_point(
    card: SharedCard, mode: str, kernel: str, target: int, before: float
) -> tuple[Point, float]:
    """A point, and the uncapped share behind it; `before`: that before it."""
    shares = windows(card, mode, kernel, target)
    behind = uncapped(card, mode, kernel)
    error = statistics.fmean(shares) - min(target, (before + behind) / 2)
    point = Point(mode, kernel, target, error, statistics.pstdev(shares))
    print(f"{mode} {kernel} {target}: {error:+.2f}, sd {point.sd:.2f}", file=sys.stderr)
    return point, behind


def uncapped(card: SharedCard, mode: str, kernel: str) -> float:
    """The share of the same program without the guard."""
    with card.busy(None, kernel, mode) as program:
        return card.shares(program, over_s=UNCAPPED_S)[0]


def windows(card: SharedCard, mode: str, kernel: str, target: int) -> list[float]:
    """Shares in consecutive windows."""
    with card.busy(new_claim(card, target), kernel, mode) as program:
        time.sleep(WARM_S)
        return series(card, program, WINDOW_S, WINDOWS)


def series(card: SharedCard, program: Busy, step_s: float, count: int) -> list[float]:
    """Shares in consecutive windows, from now on."""
    accounts = [card.account()]
    began_s = time.monotonic()
    for number in range(1, count + 1):
        time.sleep(max(began_s + number * step_s - time.monotonic(), 0))
        accounts.append(card.account())
    pairs = itertools.pairwise(accounts)
    return [later.share(earlier, (program.pid,)) for earlier, later in pairs]


def pair_error(card: SharedCard, first: int, second: int) -> float:
    """The worse error of two tenants that are busy together with mixed kernels."""
    with (
        card.busy(new_claim(card, first), MIXED) as a,
        card.busy(new_claim(card, second), MIXED) as b,
    ):
        time.sleep(WARM_S)
        shares = card.shares(a, b, over_s=PAIR_S)
    print(f"{first}+{second}: {shares[0]:.2f} {shares[1]:.2f}", file=sys.stderr)
    return max(abs(shares[0] - first), abs(shares[1] - second))


def settle_times(card: SharedCard) -> Iterator[float]:
    """Seconds until the share stays near its target: at the start, and after live changes."""
    claim = new_claim(card, 50)
    with card.busy(claim, "1ms") as program:
        yield settle_s(card, program, 50)
        for cores in (10, 75, 25):
            claim.change(cores=cores)
            yield settle_s(card, program, cores)


def settle_s(card: SharedCard, program: Busy, target: int) -> float:
    """Seconds before the first of STEADY_S windows that are all near the target."""
    needed = round(STEADY_S / STEP_S)
    shares = series(card, program, STEP_S, round(SETTLE_LIMIT_S / STEP_S))
    near = [abs(share - target) <= STEADY_POINTS for share in shares]
    starts = range(len(near) - needed + 1)
    settled = next((at for at in starts if all(near[at : at + needed])), len(near))
    return settled * STEP_S


def lone_ratio(card: SharedCard, kernel: str, mode: str) -> float:
    """The share of an uncapped tenant under the guard by that without it, interleaved."""
    ratios = []
    for _ in range(LONE_ROUNDS):
        with card.busy(new_claim(card, 0), kernel, mode) as program:
            guarded = card.shares(program, over_s=UNCAPPED_S)[0]
        ratios.append(guarded / uncapped(card, mode, kernel))
    return statistics.median(ratios)


def floor_figures() -> Iterator[Figure]:
    """Nanoseconds that the guard adds to a launch, by those that one locked addition adds."""
    with scratch() as folder:
        loop = build_programs(folder)
        guard = NATIVE / "libcasaba_guard.so"
        rounds = []
        for _ in range(FLOOR_ROUNDS):
            bare = launch_ns(loop, folder)
            floor = launch_ns(loop, folder, preload=folder / "floor.so") - bare
            open_ns = launch_ns(loop, folder, preload=guard, cores=0) - bare
            capped_ns = launch_ns(loop, folder, preload=guard, cores=99) - bare
            rounds.append((open_ns / floor, capped_ns / floor))
    for name, which, bound in (("launch_nolimit_floors", 0, 1.0), ("launch_cap_floors", 1, 1.8)):
        value = statistics.median(pair[which] for pair in rounds)
        yield Figure(name=name, value=value, unit="floors", bound=bound)


def build_programs(folder: Path) -> Path:
    """A driver that does nothing, the least hook, and a loop of launches; returns the loop."""
    compiler = ["gcc", "-std=c11", "-O2", f"-I{ROOT / 'native' / 'include'}"]
    driver, loop = folder / "libcuda.so.1", folder / "loop"
    shared = ["-shared", "-fPIC"]
    for command in (
        [*shared, "-Wl,-soname,libcuda.so.1", PROGRAMS / "stub_driver.c", "-o", driver],
        [*shared, PROGRAMS / "floor_hook.c", "-o", folder / "floor.so", "-ldl"],
        [PROGRAMS / "launch_loop.c", driver, "-o", loop],
    ):
        subprocess.run([*compiler, *map(str, command)], check=True)
    return loop


def launch_ns(loop: Path, folder: Path, *, preload: Path | None = None, cores: int = 0) -> float:
    """What one launch takes."""
    budget = folder / "run" / "claims" / "c" / "main"
    budget.mkdir(parents=True, exist_ok=True)
    limits = CardLimits(
        gpu=STUB_CARD,
        memory_bytes=1,
        context_allowance_bytes=0,
        context_size_bytes=0,
        cores_percent=cores,
    )
    (budget / "policy").write_bytes(build_policy(Policy(cards=(limits,), announce=False)))
    (budget / "region").write_bytes(build_region())
    environment = {"LD_LIBRARY_PATH": str(folder), "CASABA_RUN_DIR": str(folder / "run")}
    environment |= {"LD_PRELOAD": str(preload)} if preload else {}
    done = subprocess.run([loop], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
