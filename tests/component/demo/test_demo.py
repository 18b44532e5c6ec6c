"""`casaba demo` as a person runs it: its story, its cluster for one's own kubectl, its end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

CASABA = Path(sys.executable).parent / "casaba"
KUBECTL = Path(sys.executable).parent / "kubectl"
SCENARIO = Path(__file__).parents[3] / "examples" / "scenario"
STEPS = ["node", "slice", "claim", "look", "limit", "waits", "shares", "end"]
WAIT_S = 60.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short folder for state: a socket's path has few bytes."""
    with tempfile.TemporaryDirectory(prefix="demo-") as made:
        yield Path(made)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_RUNTIME_DIR": str(folder), "TERM": "dumb", "COLUMNS": "100"}


def demo(folder: Path, *flags: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, str(CASABA), "demo", *flags],
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """As in a terminal; what a shell starts in the background ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def as_nobody() -> tuple[str, ...]:
    """What runs a command without root's rights."""
    if os.geteuid():
        return ()
    return ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def step(process: subprocess.Popen[str], name: str) -> dict[str, Any]:
    """Read steps up to one of a name."""
    assert process.stdout is not None
    for line in process.stdout:
        told: dict[str, Any] = json.loads(line)
        if told["step"] == name:
            return told
    _, complaint = process.communicate()
    pytest.fail(f"the demo ended with {process.returncode} before {name}: {complaint}")


@contextmanager
def kept(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A demo that goes on after its story, and its kubeconfig."""
    process = demo(folder, "--keep", "--json", "--fast")
    try:
        yield process, Path(step(process, "kept")["kubeconfig"])
    finally:
        process.kill()
        process.communicate()


def kubectl(kubeconfig: Path, *words: str) -> str:
    done = subprocess.run(
        [KUBECTL, "--kubeconfig", kubeconfig, *words],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_demo(folder: Path) -> list[psutil.Process]:
    """Processes that know the demo's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("XDG_RUNTIME_DIR") == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_agent(folder: Path) -> None:
    """Somebody kills the node agent, which is then started again."""
    (agent,) = [one for one in of_demo(folder) if "node-agent" in one.cmdline()]
    agent.kill()


def until_nothing_runs(folder: Path) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while left := of_demo(folder):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


def test_the_story_ends_well_without_root_and_leaves_nothing(folder: Path) -> None:
    process = demo(folder, "--fast", prefix=as_nobody())
    said, complaint = process.communicate(timeout=WAIT_S)
    assert (process.returncode, complaint) == (0, "")
    for text in (
        "resourceslice/edge-gpu-a10-hami-core-gpu.project-hami.io-",
        "allocated: cores 50, memory 10Gi of hami-gpu-0 on edge-gpu-a10",
        "0MiB / 10240MiB",
        "refused: CUDA_ERROR_OUT_OF_MEMORY",
        "12Gi of memory asked, 8692Mi left of 23028Mi",
        "tenant A  50 %",
        "tenant B  25 %",
        "0 left",
        "without root, limits reach them by LD_PRELOAD",
    ):
        assert text in said
    assert list((folder / "casaba").iterdir()) == []
    assert of_demo(folder) == []


def test_a_kept_cluster_is_for_ones_own_kubectl(folder: Path) -> None:
    with kept(folder) as (process, kubeconfig):
        kill_agent(folder)
        assert "hami-core-gpu.project-hami.io" in kubectl(kubeconfig, "get", "resourceslices")
        files = [word for name in ("claim", "pod-native") for word in ("-f", f"{name}.yaml")]
        files = [str(SCENARIO / word) if word.endswith("yaml") else word for word in files]
        assert "created" in kubectl(kubeconfig, "apply", *files)
        ready = ("pod/gpu-test-dra", "--for=condition=Ready", f"--timeout={WAIT_S:.0f}s")
        kubectl(kubeconfig, "wait", *ready)
        deadline_s = time.monotonic() + WAIT_S
        while "0MiB / 10240MiB" not in (said := kubectl(kubeconfig, "logs", "gpu-test-dra")):
            assert time.monotonic() < deadline_s, said
        assert "allocated,reserved" in kubectl(kubeconfig, "get", "resourceclaims")
        with pytest.raises(AssertionError, match="exec is not part of the simulated cluster"):
            kubectl(kubeconfig, "exec", "gpu-test-dra", "--", "nvidia-smi")

        second = demo(folder, "--json")
        _, complaint = second.communicate(timeout=WAIT_S)
        assert second.returncode == 2
        assert f"one called 'demo' runs already (process {process.pid})" in complaint
        assert "choose another --name" in complaint

        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert list((folder / "casaba").iterdir()) == []
    assert of_demo(folder) == []


def test_a_killed_demo_takes_its_tenants_along_and_the_next_one_starts_well(folder: Path) -> None:
    process = demo(folder, "--json", "--fast")
    step(process, "look")
    process.kill()
    process.communicate()
    until_nothing_runs(folder)
    following = demo(folder, "--json", "--fast")
    said, complaint = following.communicate(timeout=WAIT_S)
    assert following.returncode == 0, complaint
    steps = {told["step"]: told for told in map(json.loads, said.splitlines())}
    assert list(steps) == STEPS
    assert steps["look"]["shown"] == "0MiB / 10240MiB"
    assert steps["limit"]["allocated_mib"] == 4096
    first, second = steps["shares"]["tenants"]
    assert 40 <= first["reached"] <= 60
    assert 15 <= second["reached"] <= 35
    assert list((folder / "casaba").iterdir()) == []


def test_a_name_that_is_no_folders_is_refused(folder: Path) -> None:
    process = demo(folder, "--name", "../up")
    _, complaint = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert "--name '../up': use at most 20 lower-case letters" in complaint


@pytest.mark.parametrize("flags", [("--fast",), ("--fast", "--json")])
def test_a_reader_that_goes_away_ends_the_demo_without_a_word(
    folder: Path, flags: tuple[str, ...]
) -> None:
    process = demo(folder, *flags)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(WAIT_S) == 141
    assert list((folder / "casaba").iterdir()) == []
    assert of_demo(folder) == []


def test_an_output_that_cant_be_written_is_told(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [CASABA, "demo", "--json", "--fast"],
            env=environment(folder),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert process.returncode == 3
    assert "can't write to the standard output: No space left on device; logs are in" in (
        process.stderr
    )


def test_an_interrupt_before_anything_has_begun_leaves_no_traceback(folder: Path) -> None:
    process = demo(folder, "--fast")
    deadline_s = time.monotonic() + WAIT_S
    while not imports_casaba(process):
        assert time.monotonic() < deadline_s
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=WAIT_S)
    assert (process.returncode, complaint) == (130, "")


def imports_casaba(process: subprocess.Popen[str]) -> bool:
    """Whether it has come as far as to load a library that only the command itself needs."""
    return "msgspec" in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.parametrize("command", ["--help", "--version", "smi"])
def test_no_command_complains_when_nobody_reads(folder: Path, command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [CASABA, command],
        env=environment(folder),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
