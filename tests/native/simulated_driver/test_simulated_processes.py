import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.native.simulated_driver import cuda, host
from tests.native.simulated_driver.cuda import MIB

PROCESSES = 16


def _wait_for_line(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"no '{text}' from {process.args!r}: {process.communicate()}")


def _end(processes: list["subprocess.Popen[str]"]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


def test_racing_processes_get_the_card_to_the_last_chunk(a10: host.Host) -> None:
    """Not one chunk over the physical memory, and none refused while there was room for it."""
    chunk_mib = 64
    command = (host.sample("alloc_until_refused"), f"--chunk-mib={chunk_mib}", "--hold")
    processes = [a10.start(*command) for _ in range(PROCESSES)]
    try:
        refusals = [_wait_for_line(process, "refused") for process in processes]
        assert all("CUDA_ERROR_OUT_OF_MEMORY" in line for line in refusals)
        chunks = [int(line.split()[0]) // chunk_mib - 1 for line in refusals]
        assert sum(chunks) == host.A10_MIB // chunk_mib
        assert a10.used_bytes() == sum(chunks) * chunk_mib * MIB
        assert a10.process_bytes() == {
            process.pid: count * chunk_mib * MIB
            for process, count in zip(processes, chunks, strict=True)
            if count > 0
        }
    finally:
        _end(processes)
    assert a10.used_bytes() == 0


def test_random_allocations_of_many_threads_stay_within_the_card(a10: host.Host) -> None:
    command = (host.sample("random_alloc"), "--seconds=3", "--threads=4", "--max-mib=1500")
    processes = [a10.start(*command, f"--seed={seed * 100}") for seed in range(PROCESSES)]
    try:
        most = 0
        while any(process.poll() is None for process in processes):
            most = max(most, a10.used_bytes())
        outcomes = [process.communicate() for process in processes]
    finally:
        _end(processes)
    assert [process.returncode for process in processes] == [0] * PROCESSES, outcomes
    assert most <= host.A10_MIB * MIB
    assert sum(int(out.split()[-2]) for out, _ in outcomes) > 0, "never came to the card's limit"
    assert a10.used_bytes() == 0


def test_what_a_killed_process_held_is_free_at_once(a10: host.Host) -> None:
    rng = random.Random(4)
    command = (host.sample("random_alloc"), "--seconds=0", "--threads=2")
    processes = [a10.start(*command, f"--seed={seed}") for seed in range(4)]
    try:
        for seed in range(40):
            victim = processes.pop(rng.randrange(len(processes)))
            _wait_for_line(victim, "started")
            time.sleep(rng.uniform(0, 0.02))  # the moment of the kill, not a wait for anything
            victim.kill()
            victim.communicate()
            assert victim.pid not in a10.process_bytes()
            processes.append(a10.start(*command, f"--seed={seed + 4}"))
    finally:
        _end(processes)
    assert a10.used_bytes() == 0


def test_slots_are_used_again(a10: host.Host) -> None:
    """More processes than slots, one after the other."""
    with a10.cuda() as process:
        assert process.call("init") == cuda.SUCCESS
        size = (a10.folder / "state").stat().st_size
    for _ in range(5):
        assert a10.run(host.sample("device_query")).returncode == 0
    assert (a10.folder / "state").stat().st_size == size


def test_a_fork_child_cannot_use_the_driver_and_harms_nothing(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        process.call("alloc", 10 * MIB)
        assert set(process.call("results_in_fork_child")) == {cuda.NOT_INITIALIZED}
        assert a10.process_bytes() == {process.pid: 10 * MIB}
        assert process.call("alloc", 5 * MIB)[0] == cuda.SUCCESS
        assert a10.used_bytes() == 15 * MIB


def test_a_fork_child_does_not_keep_its_dead_parents_memory(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        process.call("alloc", 10 * MIB)
        child = process.call("fork_sleeper")
        try:
            process.kill()
            assert a10.used_bytes() == 0
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_process_that_forked_before_cuinit_is_like_any_other(a10: host.Host) -> None:
    with a10.cuda() as process:
        child = process.call("fork_sleeper")
        os.kill(child, signal.SIGKILL)
        process.start()
        assert process.call("alloc", MIB)[0] == cuda.SUCCESS


def test_exec_gives_everything_back(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        process.call("alloc", 10 * MIB)
        assert process.process.stdin is not None
        process.process.stdin.write('["become_sleeper"]\n')
        process.process.stdin.flush()
        deadline = time.monotonic() + 10
        while a10.used_bytes() > 0:
            assert time.monotonic() < deadline
        assert Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n"


def test_the_first_users_race_to_make_the_state(a10: host.Host) -> None:
    processes = [a10.start(host.sample("device_query")) for _ in range(PROCESSES)]
    outcomes = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, outcomes
    assert sorted(path.name for path in a10.folder.iterdir()) == ["cards.conf", "pids", "state"]


@pytest.mark.skipif(not host.can_make_namespaces(), reason="namespaces are not allowed here")
def test_process_ids_are_those_of_the_reader(a10: host.Host) -> None:
    """A process in a namespace below is listed by the id it has here; one above is not listed."""
    inner = ("unshare", "--user", "--map-root-user", "--pid", "--fork")
    hold = (host.sample("alloc_until_refused"), "--chunk-mib=20000", "--hold")
    process = a10.start(*inner, *hold)
    try:
        _wait_for_line(process, "refused")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        assert a10.process_bytes() == {int(children): 20000 * MIB}
        seen = a10.run(*inner, "nvidia-smi").stdout
        assert "20000MiB / 23028MiB" in seen
        assert "No running processes found" in seen
    finally:
        process.communicate("")


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_sanitizers_find_nothing(a10: host.Host, sanitizer: str) -> None:
    a10.configure(host.DRIVER_LINES + host.card_lines(context_mib=1))
    folder = host.built(host.BUILT / sanitizer / "samples/random_alloc").parents[1]
    libraries = str(folder / "simulated_driver")
    program = (folder / "samples/random_alloc", "--seconds=2", "--threads=4", "--max-mib=3000")
    process = a10.start(*program, environment={"LD_LIBRARY_PATH": libraries})
    try:
        _wait_for_line(process, "started")
        table = a10.run(folder / "simulated_driver/nvidia-smi", LD_LIBRARY_PATH=libraries)
        output, errors = process.communicate(timeout=60)
    finally:
        _end([process])
    assert (process.returncode, errors) == (0, "")
    assert "allocations" in output
    assert (table.returncode, table.stderr) == (0, "")
    assert "random_alloc" in table.stdout
