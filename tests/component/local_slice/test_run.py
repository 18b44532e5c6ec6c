"""`casaba run` as a person uses it, on a virtual card."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CASABA = Path(sys.executable).parent / "casaba"
TIMEOUT_S = 30


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user's environment with a runtime folder of its own."""
    return {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}


def command(*words: str, memory: str = "10Gi", simulate: str = "--simulate") -> list[str]:
    """A whole command line."""
    return [str(CASABA), "run", simulate, "--memory", memory, "--", *words]


def run(environment: dict[str, str], words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_the_tenant_sees_its_slice(environment: dict[str, str]) -> None:
    assert "0MiB / 10240MiB" in run(environment, command("nvidia-smi")).stdout


@pytest.mark.parametrize(("model", "name"), [("T4", "Tesla T4"), ("H200", "NVIDIA H200")])
def test_other_models(environment: dict[str, str], model: str, name: str) -> None:
    said = run(environment, command("nvidia-smi", "-L", simulate=f"--simulate={model}")).stdout
    assert name in said


def test_the_notice_is_said_once_and_quiet_leaves_it_out(environment: dict[str, str]) -> None:
    assert run(environment, command("true")).stderr.count("take it off") == 1
    quiet = [*command()[:-1], "--quiet", "--", "true"]
    assert run(environment, quiet).stderr == ""


def test_the_guard_is_silent(environment: dict[str, str]) -> None:
    assert "Initializing" not in run(environment, command("nvidia-smi")).stderr


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_code(environment: dict[str, str], code: int) -> None:
    assert run(environment, command("sh", "-c", f"exit {code}")).returncode == code


def test_death_by_a_signal(environment: dict[str, str]) -> None:
    assert run(environment, command("sh", "-c", "kill -9 $$")).returncode == -signal.SIGKILL


def test_signals_reach_the_command(environment: dict[str, str]) -> None:
    script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    with subprocess.Popen(
        command("sh", "-c", script), env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.read() == "got it\n"
        assert process.wait(TIMEOUT_S) == 5


def test_the_terminal_is_the_commands(environment: dict[str, str]) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execve(CASABA, command("sh", "-c", "test -t 0 && test -t 1 && tty"), environment)
    said = b""
    try:
        while chunk := os.read(terminal, 1024):
            said += chunk
    except OSError:  # the other end was closed
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"/dev/pts/" in said


def test_standard_input_is_the_commands(environment: dict[str, str]) -> None:
    done = subprocess.run(
        command("cat"), env=environment, input=b"through", capture_output=True, check=True
    )
    assert done.stdout == b"through"


def test_the_commands_own_options_are_not_ours(environment: dict[str, str]) -> None:
    assert run(environment, command("echo", "--memory", "--simulate")).stdout == (
        "--memory --simulate\n"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (command("true", memory="10Q"), "'10Q' is not a quantity"),
        (command("true", memory="24Gi"), "at most 23028Mi"),
        (command("true", simulate="--simulate=A11"), "no virtual card 'A11'; there are A10"),
        (command(), "no command"),
        ([*command()[:-1], "--gpu", "3", "--", "true"], "--gpu 3: no such card"),
    ],
)
def test_mistakes_are_told_and_exit_2(
    environment: dict[str, str], words: list[str], text: str
) -> None:
    done = run(environment, words)
    assert text in done.stderr
    assert done.returncode == 2


def test_a_missing_program_exits_127_as_with_env(environment: dict[str, str]) -> None:
    done = run(environment, command("no-such-program"))
    assert "no-such-program: no such program" in done.stderr
    assert done.returncode == 127


def test_no_driver_is_told_and_exits_3(environment: dict[str, str], tmp_path: Path) -> None:
    words = [str(CASABA), "run", "--memory", "1Gi", "--driver-root", str(tmp_path), "--", "true"]
    done = run(environment, words)
    assert f"no NVIDIA driver below {tmp_path}" in done.stderr
    assert done.returncode == 3


BINDING = """
import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
for version in (None, pynvml.nvmlMemory_v2):
    print(pynvml.nvmlDeviceGetMemoryInfo(card, version=version).total // 2**20, "MiB")
"""


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (("-c", BINDING), "10240 MiB\n10240 MiB\n"),
        (("-m", "nvitop", "-1"), "/ 10240MiB"),
        (("-m", "gpustat", "--no-color"), "0 / 10240 MB"),
    ],
    ids=["nvidia-ml-py", "nvitop", "gpustat"],
)
def test_unmodified_clients_show_the_slice(
    environment: dict[str, str], client: tuple[str, ...], text: str
) -> None:
    done = run(environment, command(sys.executable, *client))
    assert done.returncode == 0, done.stderr
    assert text in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_nothing_is_left_of_runs_that_are_over(environment: dict[str, str], tmp_path: Path) -> None:
    for _ in range(3):
        run(environment, command("true"))
    assert len(list((tmp_path / "casaba").glob("run-*"))) <= 1


def test_smi_tells_what_a_slice_holds(environment: dict[str, str]) -> None:
    samples = Path(__file__).parents[3] / "build" / "native" / "samples"
    words = command(str(samples / "alloc_until_refused"), "--chunk-mib=1024", "--hold")
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "refused" not in process.stdout.readline():
            assert process.poll() is None
        (slice_,) = map(
            json.loads, run(environment, [str(CASABA), "smi", "--json"]).stdout.splitlines()
        )
        shown = run(environment, [str(CASABA), "smi"]).stdout
        process.communicate()
    (row,) = slice_["processes"]
    assert row["pid"] == process.pid
    assert row["cards"][0]["asked_bytes"] == 10 << 30
    assert row["peak_bytes"] == 10 << 30
    assert slice_["refusals"] == 1
    assert "10240 / 10240 MiB" in shown
    assert "no slices" in run(environment, [str(CASABA), "smi"]).stdout
