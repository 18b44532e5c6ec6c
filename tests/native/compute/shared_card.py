"""One virtual card with tenants that share its time, in a folder of its own.

What a tenant got is the card's own account (`nvidia-smi --busy`), not what the guard says.
"""

import os
import platform
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from casaba.model.ids import GpuUuid
from casaba.model.limits import CardLimits, Policy
from casaba.wire import _region_layout as layout
from casaba.wire.policy_file import build_policy, change_policy
from casaba.wire.region_file import build_region
from casaba.wire.schedule_file import build_schedule

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "src" / "casaba" / "_native" / platform.machine()
BUSY = NATIVE / "samples" / "busy"
CARD = GpuUuid("GPU-00000000-0000-0000-0000-0000c0ffee00")
GIB = 1 << 30
NS_PER_S = 1_000_000_000
END_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Account:
    """What the card says at one moment: its clock, and busy time ever by process."""

    now_ns: int
    busy_ns: Mapping[int, int]

    def share(self, earlier: "Account", pids: tuple[int, ...]) -> float:
        """Percent of the time since an earlier account that the processes were served."""
        busy_ns = sum(self.busy_ns.get(pid, 0) - earlier.busy_ns.get(pid, 0) for pid in pids)
        return busy_ns / (self.now_ns - earlier.now_ns) * 100


@dataclass
class Claim:
    """One tenant: a run folder with one request of one claim, beside the card's schedule."""

    name: str
    run_folder: Path
    policy: Policy

    @property
    def folder(self) -> Path:
        """Of the request."""
        return self.run_folder / "claims" / self.name / "main"

    def write(self, schedules: Path) -> None:
        """Make policy and region."""
        self.folder.mkdir(parents=True)
        (self.folder / "policy").write_bytes(build_policy(self.policy))
        (self.folder / "region").write_bytes(build_region())
        (self.run_folder / "gpus").symlink_to(schedules)

    def change(self, *, cores: int, weight: int = 0) -> None:
        """Change the limits in place, as the agent does."""
        self.policy = policy(cores, weight, generation=self.policy.generation + 1)
        with (self.folder / "policy").open("r+b") as file:
            for offset, content in change_policy(file.read(), self.policy):
                file.seek(offset)
                file.write(content)
                file.flush()

    def told(self, word: str) -> int:
        """The sum of one word of all slots of the region."""
        content = (self.folder / "region").read_bytes()
        offset = getattr(layout, f"REGION_SLOT_{word.upper()}")[0]
        first, size = layout.REGION_FILE_SLOTS + offset, layout.REGION_SLOT_BYTES
        places = range(first, first + size * layout.REGION_SLOTS, size)
        return sum(int.from_bytes(content[at : at + 8], "little") for at in places)


def policy(cores: int, weight: int = 0, *, generation: int = 1) -> Policy:
    """Limits of compute only."""
    card = CardLimits(
        gpu=CARD,
        memory_bytes=GIB,
        context_allowance_bytes=GIB,
        context_size_bytes=0,
        cores_percent=cores,
        weight=weight,
    )
    return Policy(cards=(card,), announce=False, generation=generation)


class Busy:
    """A process that keeps the card busy until it is stopped."""

    def __init__(self, environment: Mapping[str, str], *options: str, seconds: float = 300) -> None:
        """Start it and wait until it launches."""
        command = [str(BUSY), f"--seconds={seconds}", *options]
        self.process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"busy\n":
            raise AssertionError(f"{command} ended with {self.process.wait()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL, at whatever it is doing."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate(timeout=END_TIMEOUT_S)


class SharedCard:
    """A host with a card that is shared; more cards may be there, of which no claim knows."""

    def __init__(self, folder: Path, *, more_cards: int = 0) -> None:
        """Everything lies below `folder`."""
        self.folder = folder
        self.cards_folder = folder / "cards"
        self.schedules = folder / "gpus"
        self.cards_folder.mkdir(parents=True)
        self.schedules.mkdir()
        text = "driver_version = 580.126.09\ncuda_version = 13000\ndevice_nodes = ignored\n"
        for number in range(1 + more_cards):
            uuid = CARD if number == 0 else f"GPU-00000000-0000-0000-0000-{number:012x}"
            text += (
                f"[card]\nmodel = A10\nuuid = {uuid}\nbus_id = 00000000:{number + 3:02x}:00.0\n"
                f"minor = {number}\ncontext_mib = 0\n"
            )
        (self.cards_folder / "cards.conf").write_text(text)
        self.rebuild_schedule()

    @property
    def schedule(self) -> Path:
        """The card's schedule file."""
        return self.schedules / CARD

    def rebuild_schedule(self) -> None:
        """Make it whole, in place, as the agent does."""
        with self.schedule.open("r+b" if self.schedule.exists() else "wb") as file:
            file.write(build_schedule(CARD))

    def claim(self, name: str, cores: int, weight: int = 0) -> Claim:
        """Prepare a tenant."""
        claim = Claim(name, self.folder / name, policy(cores, weight))
        claim.write(self.schedules)
        return claim

    def environment(self, claim: Claim | None) -> dict[str, str]:
        """Of a process of a tenant; None: one without the guard."""
        environment = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": str(NATIVE / "simulated_driver"),
            "CASABA_SIMULATED_DIR": str(self.cards_folder),
        }
        if claim is None:
            return environment
        guard = {"LD_PRELOAD": str(NATIVE / "libcasaba_guard.so")}
        return environment | guard | {"CASABA_RUN_DIR": str(claim.run_folder)}

    def busy(self, claim: Claim | None, kernels: str, mode: str = "async") -> Busy:
        """A process that keeps the card busy with kernels of these times."""
        return Busy(self.environment(claim), f"--kernels={kernels}", f"--mode={mode}")

    def account(self) -> Account:
        """What the card served to whom, until now."""
        command = [str(NATIVE / "simulated_driver" / "nvidia-smi"), "--busy"]
        done = subprocess.run(
            command, env=self.environment(None), capture_output=True, text=True, check=True
        )
        rows = [line.split(", ") for line in done.stdout.splitlines()[1:]]
        rows = [row for row in rows if row[0] == "0"]
        (now_ns,) = (int(row[2]) for row in rows if row[1] == "total")
        busy_ns = {int(row[2]): int(row[4]) for row in rows if row[1] != "total"}
        return Account(now_ns, busy_ns)

    def shares(self, *programs: Busy, over_s: float) -> list[float]:
        """Percent of the card's time that each program gets, from now on."""
        before = self.account()
        time.sleep(over_s)
        after = self.account()
        return [after.share(before, (program.pid,)) for program in programs]
