"""The limit across processes, forks and deaths."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casaba.wire import _region_layout as region_layout
from tests.native.guard.machine import CARDS, MIB, Machine
from tests.native.guard.tenant import SUCCESS

LIMIT = 64 * MIB


def test_processes_share_the_limit(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as one, machine.tenant() as two:
        one.start()
        two.start()
        block = one.alloc(LIMIT - MIB)
        assert block is not None
        assert two.alloc(MIB + 1) is None
        assert two.alloc(MIB) is not None
        assert two.memory() == (0, LIMIT)
        assert one.free(block) == SUCCESS
        assert two.alloc(LIMIT - MIB) is not None


def test_what_a_killed_process_had_is_free_at_once(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT}, context_size=MIB)
    for _ in range(20):
        with machine.tenant() as victim, machine.tenant() as heir:
            victim.start()
            heir.start()
            assert victim.alloc(LIMIT - 2 * MIB) is not None
            assert heir.alloc(MIB) is None
            victim.kill()
            assert heir.alloc(LIMIT - MIB) is not None
            assert budget.usage()[0].overhead_bytes == MIB


def test_a_slot_is_used_again(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    for _ in range(5):
        with machine.tenant() as tenant:
            tenant.start()
            assert tenant.alloc(LIMIT) is not None
    offset, _ = region_layout.REGION_FILE_HIGH_WATER
    assert budget.region_file.read_bytes()[offset] == 1


class TestFork:
    """A child is another process with a slot of its own."""

    def test_the_parents_memory_stays_charged(self, machine: Machine) -> None:
        budget = machine.budget({CARDS[0]: LIMIT})
        with machine.tenant() as parent, machine.tenant() as other:
            parent.start()
            other.start()
            block = parent.alloc(LIMIT)
            assert block is not None
            assert parent.fork()
            assert parent.free(block) != SUCCESS
            assert parent.call("cuInit", 0).result in (SUCCESS, 3)
            parent.call("cuMemAlloc_v2", bytes(8), MIB)
            assert other.alloc(1) is None
            assert budget.usage()[0].asked_bytes == LIMIT
            parent.leave_child()
            assert other.alloc(1) is None
            assert parent.free(block) == SUCCESS
            assert other.alloc(LIMIT) is not None

    def test_a_child_of_a_process_that_only_looked(self, machine: Machine) -> None:
        budget = machine.budget({CARDS[0]: LIMIT})
        with machine.tenant() as parent:
            handle = parent.nvml_handle()
            assert parent.fork()
            parent.start()
            assert parent.alloc(LIMIT + 1) is None
            assert parent.alloc(LIMIT) is not None
            assert budget.usage()[0].asked_bytes == LIMIT
            parent.leave_child()
            end = time.monotonic() + 5
            while parent.nvml_memory(handle)[2] and time.monotonic() < end:
                pass
            assert parent.nvml_memory(handle) == (LIMIT, LIMIT, 0)

    def test_a_child_does_not_keep_a_dead_parents_slot(self, machine: Machine) -> None:
        machine.budget({CARDS[0]: LIMIT})
        with machine.tenant() as parent, machine.tenant() as heir:
            parent.start()
            heir.start()
            assert parent.alloc(LIMIT) is not None
            assert parent.fork()
            child = int(
                Path(f"/proc/{parent.process.pid}/task/{parent.process.pid}/children")
                .read_text()
                .split()[0]
            )
            os.kill(parent.process.pid, signal.SIGKILL)
            parent.process.wait(timeout=10)
            assert Path(f"/proc/{child}").exists()
            assert heir.alloc(LIMIT) is not None


class Racers:
    """Programs that allocate and free at random, by every door and in every kind of memory."""

    def __init__(self, machine: Machine, samples: dict[str, Path]) -> None:
        """Nothing is started yet."""
        self.machine, self.samples = machine, list(samples.values())
        self.started: list[subprocess.Popen[str]] = []

    def start(self, seconds: int) -> subprocess.Popen[str]:
        """One more; 0 seconds: until it is killed."""
        number = len(self.started)
        command = [str(self.samples[number % len(self.samples)])]
        command += [f"--seed={number}", f"--seconds={seconds}", "--max-mib=64", "--blocks=4"]
        racer = subprocess.Popen(
            command, env=self.machine.environment(), stdout=subprocess.PIPE, text=True
        )
        self.started.append(racer)
        return racer

    def end(self) -> None:
        """Whatever still runs."""
        for racer in self.started:
            racer.kill()
            racer.wait()
            if racer.stdout:
                racer.stdout.close()


@pytest.fixture
def racers(machine: Machine, samples: dict[str, Path]) -> Iterator[Racers]:
    """None yet."""
    racers = Racers(machine, samples)
    yield racers
    racers.end()


def test_sixteen_racing_processes_never_pass_the_limit(machine: Machine, racers: Racers) -> None:
    """The card has just what the budget may use: the limit, and the contexts that are free.

    So if the guard ever granted too much, the driver would refuse, and programs would count more
    refusals than the guard.
    """
    limit, allowance = 512 * MIB, 15 * MIB
    machine.describe_cards(context_mib=1, memory_mib=(limit + allowance) // MIB)
    budget = machine.budget({CARDS[0]: limit}, allowance=allowance, context_size=MIB)
    with machine.tenant(guarded=False) as observer:
        handle = observer.nvml_handle()
        running = [racers.start(seconds=3) for _ in range(16)]
        seen = []
        while any(racer.poll() is None for racer in running):
            seen.append(observer.nvml_memory(handle)[2])
    printed = [racer.stdout.read() for racer in running if racer.stdout]
    assert [racer.returncode for racer in running] == [0] * 16
    assert 0.95 * limit < max(seen) <= limit + allowance
    counts = [re.search(r"(\d+) allocations, (\d+) refusals", text) for text in printed]
    assert all(count and int(count[1]) > 0 for count in counts)
    assert sum(int(count[2]) for count in counts if count) == budget.refusals() > 0
    assert budget.usage()[0].asked_bytes == 0


def test_killed_racers_leave_nothing(machine: Machine, racers: Racers) -> None:
    limit = 512 * MIB
    machine.budget({CARDS[0]: limit})
    with machine.tenant(guarded=False) as observer, machine.tenant() as heir:
        handle = observer.nvml_handle()
        heir.start()
        running = [racers.start(seconds=0) for _ in range(6)]
        seen = []
        for turn in range(40):
            end = time.monotonic() + 0.05
            while time.monotonic() < end:
                seen.append(observer.nvml_memory(handle)[2])
            running[turn % 6].kill()
            running[turn % 6].wait()
            running[turn % 6] = racers.start(seconds=0)
        racers.end()
        assert 0.8 * limit < max(seen) <= limit
        assert heir.alloc(limit) is not None
