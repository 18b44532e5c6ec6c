"""Launches take the card's time; the card tells exactly whose it was."""

import random
import time

import pynvml
import pytest

from tests.native.simulated_driver import cuda, host
from tests.native.simulated_driver.cuda import NOT_READY, SUCCESS, CudaProcess

MS = 1_000_000
SLICE_MS = 2


def begin(process: CudaProcess, kernel: str = "spin") -> CudaProcess:
    process.start()
    assert process.call("begin", kernel) == SUCCESS
    return process


@pytest.mark.parametrize(
    ("kernel", "expected_ms"),
    [("spin", 3.0), ("spin_4ms", 4.0), ("spin_700us", 0.7), ("spin_2000000ns", 2.0), ("x", 0.0)],
)
def test_a_kernel_takes_the_time_that_its_name_says(
    a10: host.Host, kernel: str, expected_ms: float
) -> None:
    with a10.work() as process:
        begin(process, kernel)
        intervals = process.call("intervals_ms", 3 * MS, 5)
        if expected_ms > 0:
            assert intervals == pytest.approx([expected_ms] * 4, abs=1e-3)
        else:
            assert max(intervals) < 1


def test_other_kernels_take_what_the_settings_say(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + "kernel_us = 1500\n" + host.A10)
    with a10.work() as process, a10.work(CASABA_SIMULATED_KERNEL_US="2500") as other:
        assert begin(process, "x").call("intervals_ms", 0, 3) == pytest.approx([1.5] * 2, abs=1e-3)
        assert begin(other, "x").call("intervals_ms", 0, 3) == pytest.approx([2.5] * 2, abs=1e-3)


def test_waits_and_questions_tell_what_is_done(a10: host.Host) -> None:
    with a10.work() as process:
        begin(process)
        event = process.call("event")
        launched = time.monotonic()
        process.call("launch", 40 * MS)
        process.call("record", event)
        process.call("launch", 40 * MS)
        assert process.call("query") == NOT_READY
        assert process.call("query_event", event) == NOT_READY
        assert process.call("synchronize_event", event) == SUCCESS
        assert time.monotonic() - launched >= 0.04
        assert process.call("query_event", event) == SUCCESS
        assert process.call("query") == NOT_READY
        assert process.call("synchronize_context") == SUCCESS
        assert time.monotonic() - launched >= 0.08
        assert process.call("query") == SUCCESS


def test_an_event_keeps_its_time_however_late_it_is_asked(a10: host.Host) -> None:
    """Also while a neighbour that is asked all the time carries the model on."""
    with a10.work() as process, a10.work() as neighbour:
        begin(process)
        begin(neighbour)
        start, end = process.call("event"), process.call("event")
        process.call("launch", MS)
        process.call("record", start)
        process.call("launch", 30 * MS)
        process.call("record", end)
        deadline = time.monotonic() + 0.1
        while time.monotonic() < deadline:
            neighbour.call("query")
        assert process.call("elapsed_ms", start, end) == pytest.approx([SUCCESS, 30.0], abs=1e-3)


def test_many_events_keep_their_times(a10: host.Host) -> None:
    """More than the card keeps marks for, queued faster than the card works."""
    with a10.work() as process:
        intervals = begin(process).call("intervals_ms", MS // 20, 3000)
        assert len(intervals) == 2999
        assert min(intervals) >= 0.05 - 1e-6
        assert sorted(intervals)[len(intervals) // 2] == pytest.approx(0.05, abs=1e-6)


def test_streams_wait_for_events_and_for_the_default_stream(a10: host.Host) -> None:
    with a10.work() as process:
        begin(process)
        blocking, free = process.call("stream"), process.call("stream", 1)
        event = process.call("event")
        process.call("launch", 30 * MS, 1, free)
        assert process.call("query", blocking) == SUCCESS
        assert process.call("query") == SUCCESS, "the default stream waits for a non-blocking one"
        process.call("record", event, free)
        process.call("wait", blocking, event)
        assert process.call("query", blocking) == NOT_READY
        assert process.call("query") == NOT_READY
        assert process.call("synchronize")[0] == SUCCESS
        assert process.call("query", free) == SUCCESS


def test_a_stream_takes_1024_launches_ahead(a10: host.Host) -> None:
    with a10.work() as process:
        begin(process)
        assert process.call("launch_s", MS, 1000) < 0.5
        assert process.call("launch_s", MS, 1024) >= 0.9


def test_a_function_is_called_where_the_stream_gets_to_it(a10: host.Host) -> None:
    with a10.work() as process:
        begin(process)
        launched = time.monotonic()
        process.call("launch", 30 * MS)
        assert process.call("call_behind") == SUCCESS
        process.call("synchronize")
        (called,) = process.call("called_at")
        assert 0.03 <= called - launched <= process.call("synchronize")[1] - launched


def test_two_processes_are_served_in_turn(a10: host.Host) -> None:
    """Whoever queues long or short kernels, slice for slice, to the nanosecond."""
    with a10.work() as one, a10.work() as two:
        begin(one)
        begin(two)
        one.call("launch", 10 * MS, 60)
        two.call("launch", MS // 5, 1000)
        before = a10.busy()
        deadline = time.monotonic() + 0.15
        while time.monotonic() < deadline:
            pass
        after = a10.busy()
        served = [after.processes_ns[pid] - before.processes_ns[pid] for pid in (one.pid, two.pid)]
        assert abs(served[0] - served[1]) <= 2 * SLICE_MS * MS
        assert sum(served) == after.card_ns - before.card_ns == after.now_ns - before.now_ns


def test_elapsed_time_includes_the_neighbours_slices(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + "slice_us = 5000\n" + host.A10)
    with a10.work() as process, a10.work() as neighbour:
        begin(process)
        begin(neighbour)
        neighbour.call("launch", 100 * MS, 4)
        intervals = process.call("intervals_ms", 10 * MS, 4)
        assert intervals == pytest.approx([20.0] * 3, abs=1e-3)


def test_a_killed_process_leaves_its_turn_at_once(a10: host.Host) -> None:
    with a10.work() as process, a10.work() as victim:
        begin(process)
        begin(victim)
        victim.call("launch", 100 * MS, 500)
        process.call("launch", 50 * MS)
        victim.kill()
        killed = time.monotonic()
        result, done = process.call("synchronize")
        assert (result, done - killed < 0.08) == (SUCCESS, True)


def test_the_account_outlives_its_process(a10: host.Host) -> None:
    with a10.work() as process:
        begin(process)
        process.call("launch", 5 * MS, 4)
        process.call("synchronize")
    with a10.work() as later:
        begin(later)
        later.call("launch", 3 * MS)
        later.call("synchronize")
        busy = a10.busy()
        assert busy.processes_ns == {process.pid: 20 * MS, later.pid: 3 * MS}
        assert busy.card_ns == 23 * MS


def test_racing_processes_and_kills_keep_the_account_whole(a10: host.Host) -> None:
    """Sixteen processes launch, wait and are killed at any moment: nobody stalls, and what was
    served is what the card was busy."""
    rng = random.Random(7)
    program = (host.sample("random_work"), "--seconds=0", "--threads=2")
    processes = [a10.start(*program, f"--seed={seed}") for seed in range(16)]
    try:
        for seed in range(30):
            victim = processes.pop(rng.randrange(len(processes)))
            time.sleep(rng.uniform(0, 0.03))  # the moment of the kill, not a wait for anything
            victim.kill()
            victim.communicate()
            processes.append(a10.start(*program, f"--seed={seed + 16}"))
        with a10.work() as process:
            begin(process)
            process.call("launch", MS, 5)
            assert process.call("synchronize")[0] == SUCCESS
    finally:
        for left in processes:
            left.kill()
            left.communicate()
    busy = a10.busy()
    assert sum(busy.processes_ns.values()) == busy.card_ns > 0


def test_nvml_tells_utilisation_over_its_window(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + "utilization_window_ms = 334\n" + host.A10)
    with a10.work() as process, a10.work() as neighbour, host.nvml():
        begin(process)
        begin(neighbour)
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        assert pynvml.nvmlDeviceGetUtilizationRates(card).gpu == 0
        process.call("launch", 10 * MS, 200)
        neighbour.call("launch", 10 * MS, 200)
        deadline = time.monotonic() + 3
        while (busy := pynvml.nvmlDeviceGetUtilizationRates(card).gpu) < 100:
            assert time.monotonic() < deadline, busy
        samples = pynvml.nvmlDeviceGetProcessUtilization(card, 0)
        shares = {sample.pid: sample.smUtil for sample in samples}
        assert shares == pytest.approx({process.pid: 50, neighbour.pid: 50}, abs=2)
        seen_us = samples[0].timeStamp
        assert abs(seen_us / 1e6 - time.time()) < 1
        with pytest.raises(pynvml.NVMLError_NotFound):
            pynvml.nvmlDeviceGetProcessUtilization(card, seen_us + 10**6)
        kind, values = pynvml.nvmlDeviceGetSamples(card, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        assert kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        assert values[-1].sampleValue.uiVal == 100


def test_what_was_asked_for_goes_wrong(a10: host.Host) -> None:
    with a10.work(CASABA_SIMULATED_FAULTS="alloc_fails_every=3") as process:
        process.start()
        results = [process.call("alloc", cuda.MIB)[0] for _ in range(6)]
        assert results == [SUCCESS, SUCCESS, cuda.OUT_OF_MEMORY] * 2
    with a10.work(CASABA_SIMULATED_FAULTS="fails_after_launches=2") as process:
        begin(process)
        assert [process.call("launch", 0) for _ in range(3)] == [SUCCESS, SUCCESS, 719]
        assert process.call("synchronize_context") == 719
    absent = a10.run("nvidia-smi", CASABA_SIMULATED_FAULTS="nvml_absent=yes")
    assert (absent.returncode, "Driver Not Loaded" in absent.stderr) == (9, True)
    begun = time.monotonic()
    assert a10.run("nvidia-smi", "-L", CASABA_SIMULATED_FAULTS="nvml_delay_ms=50").returncode == 0
    assert time.monotonic() - begun >= 0.15


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_sanitizers_find_nothing_in_work(a10: host.Host, sanitizer: str) -> None:
    program = host.built(host.BUILT / sanitizer / "samples/random_work")
    libraries = str(program.parents[1] / "simulated_driver")
    ended = a10.run(program, "--seconds=2", "--threads=4", LD_LIBRARY_PATH=libraries)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "launches" in ended.stdout
