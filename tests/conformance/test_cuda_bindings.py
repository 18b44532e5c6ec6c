"""NVIDIA's binding of the CUDA driver API runs on the virtual card as it is on PyPI."""

import json
import subprocess
import sys
from typing import Any

from tests.native.simulated_driver import host

MODULE = ("-m", "tests.conformance.cuda_calls")


def answer(machine: host.Host, program: str) -> dict[str, Any]:
    ended = machine.run(sys.executable, *MODULE, program)
    assert (ended.returncode, ended.stderr) == (0, "")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def line(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def go_on(process: "subprocess.Popen[str]") -> Any:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return line(process)


def test_it_sees_the_device(a10: host.Host) -> None:
    assert answer(a10, "device") == {
        "version": 13000,
        "name": "NVIDIA A10",
        "memory_mib": 23028,
        "multiprocessors": 72,
        "free_mib": 23028,
        "error_text": "device not ready",
        "not_here": "CUDA_ERROR_NOT_SUPPORTED",
    }


def test_it_moves_bytes(a10: host.Host) -> None:
    assert answer(a10, "copies") == {
        "bytes": "04030201" * 4,
        "twice": "CUDA_ERROR_INVALID_VALUE",
    }


def test_it_runs_graphs(a10: host.Host) -> None:
    """The time of a graph is that of its kernels; its memory is reserved until it is trimmed."""
    assert answer(a10, "graphs") == {
        "nodes": 5,
        "took_ms": 30.0,
        "held_mib": [0, 64, 0],
        "explicit_ms": 8.0,
    }
    assert answer(a10, "kept_graph_memory") == {"held_mib": [0, 64, 0]}


def test_captures_end_by_the_rules(a10: host.Host) -> None:
    unsupported = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    invalidated = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    assert answer(a10, "broken_captures") == {
        "allocation": [unsupported, invalidated],
        "wait": [unsupported, invalidated],
        "outside": ["CUDA_ERROR_STREAM_CAPTURE_ISOLATION", invalidated],
        "unjoined": ["CUDA_ERROR_STREAM_CAPTURE_UNJOINED"],
        "legacy": [unsupported],
        "implicit": ["CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", invalidated],
        "relaxed": ["CUDA_SUCCESS", "CUDA_SUCCESS"],
    }


def test_it_uses_pools(a10: host.Host) -> None:
    assert answer(a10, "pools") == {"held_mib": [8, 8, 0, 2, 0], "used_high_mib": 8}
    assert answer(a10, "own_pool") == {
        "held_mib": [8, 0],
        "default_again": True,
        "default_destroyed": "CUDA_ERROR_NOT_PERMITTED",
    }


def test_it_shares_pools(a10: host.Host) -> None:
    assert answer(a10, "exported_pool") == {"held_mib": [8, 8, 0]}


def test_it_makes_green_contexts(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + host.card_lines(context_mib=100))
    assert answer(a10, "green_context") == {"multiprocessors": 72, "held_mib": [100, 0]}


def test_it_makes_arrays(a10: host.Host) -> None:
    assert answer(a10, "arrays") == {"held_mib": [16, 17.3125, 0], "level_width": 256}


def test_a_descriptor_holds_memory(a10: host.Host) -> None:
    assert answer(a10, "shareable") == {"held_mib": [8, 8, 0]}


def test_memory_lives_until_the_last_process_lets_go(a10: host.Host) -> None:
    export = a10.start(sys.executable, *MODULE, "export")
    try:
        handle = line(export)
        first, second = (a10.start(sys.executable, *MODULE, "import", handle) for _ in range(2))
        try:
            assert [line(first), line(second)] == ["CUDA_SUCCESS"] * 2
            assert go_on(export) == {"held_mib": 8}
            second.kill()
            second.communicate()
            assert go_on(first) == {"free_mib": host.A10_MIB}
        finally:
            for process in (first, second):
                process.kill()
                process.communicate()
        late = a10.start(sys.executable, *MODULE, "import", handle)
        assert line(late) == "CUDA_ERROR_INVALID_VALUE"
        late.communicate("\n")
    finally:
        export.kill()
        export.communicate()
