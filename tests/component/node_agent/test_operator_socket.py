"""`casaba smi` on a node: what it asks the agent, and what a person sees."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from casaba.errors import HostError, InvalidInput
from casaba.model.node_use import NodeUse
from casaba.net.operator_socket import OperatorServer, fetch_document
from casaba.simulation.gpu_host import SCENARIO_UUID
from casaba.wire.node_report import NodeReport, build_report, parse_report
from tests.component.node_agent.live_node import DRIVER, IMAGE, LiveNode, live_node, share
from tests.component.simulation.kubelets import NODE, shell, until

GIB = 1 << 30
TIMEOUT_S = 20.0


async def smi(live: LiveNode, *flags: str) -> str:
    """What `casaba smi` prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casaba", "smi", f"--agent={live.host.folder}/run/agent.sock"),
        *flags,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_a_node_with_a_tenant(short_folder: Path) -> None:
    script = f"cd {short_folder}; alloc_until_refused --hold < hold > held"
    async with live_node(short_folder) as live:
        os.mkfifo(short_folder / "hold")
        await live.until_devices(["hami-gpu-0"])
        assert "no slices" in await smi(live)
        await live.node.add_claim("half", share(), driver=DRIVER)
        pod = await live.node.run_pod(
            shell(script, "half", image=IMAGE), claims=["half"], name="tenant"
        )
        await live.node.pod_in_phase(pod, "Running")
        with (short_folder / "hold").open("w"):
            await until("it was refused", lambda: _reads(short_folder / "held"))
            shown = await smi(live)
            report = parse_report((await smi(live, "--json")).encode())
    for part in (NODE, "hami-gpu-0", "NVIDIA A10", SCENARIO_UUID, "tenant", "main", "half / gpu"):
        assert part in shown
    (row,) = [line for line in shown.splitlines() if "half / gpu" in line]
    assert "10240 / 10240 MiB" in row  # nothing is squeezed in a pipe
    assert "50 %" in shown
    (slice_,) = report.use.slices
    assert slice_.cards[0].memory_used_bytes == 10 * GIB
    assert (slice_.owner.pod, slice_.refusals) == ("tenant", 1)
    assert report.registered


async def _reads(path: Path) -> bool:
    return path.exists() and "refused" in path.read_text()


async def test_watching_shows_it_again_and_again(short_folder: Path) -> None:
    async with live_node(short_folder) as live:
        await live.until_devices(["hami-gpu-0"])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "casaba", "smi", f"--agent={short_folder}/run/agent.sock"),
            *("--json", "--watch=0.1"),
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        lines = [await process.stdout.readline() for _ in range(3)]
        process.terminate()
        await process.communicate()
    assert [json.loads(line)["use"]["node"] for line in lines] == [NODE] * 3


@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_watching_goes_on_when_the_agent_is_started_anew(
    short_folder: Path, flags: list[str]
) -> None:
    path = short_folder / "agent.sock"
    use = NodeUse(
        node=NODE,
        gpus=(),
        readings={},
        slices=(),
        guards=(),
        foreign={},
        boot_time_ns=1,
        pods_told=True,
    )

    def agent(release: str) -> OperatorServer:
        async def told() -> bytes:
            report = NodeReport(release=release, guard="", registered=True, problems=(), use=use)
            return build_report(report)

        return OperatorServer(path, told)

    async with agent("first"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "casaba", "smi", f"--agent={path}", "--watch=0.1", *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        await _line_with(process.stdout, "first")
    await _line_with(process.stderr, "waiting: no node agent answers")
    async with agent("second"):
        await _line_with(process.stdout, "second")
        process.terminate()
        await process.communicate()


async def _line_with(stream: asyncio.StreamReader, part: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while part not in (line := (await stream.readline()).decode()):
            assert line, f"it ended before it said {part!r}"


@pytest.mark.parametrize("pause", ["nan", "inf", "0"])
async def test_a_pause_that_is_none_is_refused_in_a_sentence(tmp_path: Path, pause: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casaba", "smi", f"--run-dir={tmp_path}", f"--watch={pause}"),
        stderr=subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == InvalidInput.exit_code
    assert errors.decode().startswith("casaba smi: --watch")
    assert len(errors.decode().splitlines()) == 1


async def test_problems_are_shown(short_folder: Path) -> None:
    async with live_node(short_folder, driver=short_folder / "nowhere") as live:
        await live.until_event("DriverMissing")
        shown = await smi(live)
        assert "DriverMissing" in shown
        assert "install the driver" in shown.replace("\n", " ")


async def document() -> bytes:
    return b"{}"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_the_owner_may_ask(short_folder: Path) -> None:
    path = short_folder / "agent.sock"
    async with OperatorServer(path, document):
        assert mode(path) == 0o600
        assert await asyncio.to_thread(fetch_document, path, TIMEOUT_S) == b"{}"
        assert [one.name for one in short_folder.iterdir()] == ["agent.sock"]
    assert list(short_folder.iterdir()) == []


async def test_a_new_agent_takes_over_and_the_old_one_leaves_it_alone(short_folder: Path) -> None:
    async def newer() -> bytes:
        return b'"newer"'

    path = short_folder / "agent.sock"
    old = OperatorServer(path, document)
    await old.__aenter__()
    async with OperatorServer(path, newer):
        await old.__aexit__(None, None, None)
        assert await asyncio.to_thread(fetch_document, path, TIMEOUT_S) == b'"newer"'


async def test_an_answer_that_fails_is_told_and_ends_nothing(short_folder: Path) -> None:
    async def failing() -> bytes:
        raise ValueError("no such card")

    path = short_folder / "agent.sock"
    async with OperatorServer(path, failing):
        for _ in range(2):
            with pytest.raises(HostError, match="no such card"):
                await asyncio.to_thread(fetch_document, path, TIMEOUT_S)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no node agent answers at"):
        fetch_document(tmp_path / "agent.sock", TIMEOUT_S)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"version": 2}', b"\xff"])
def test_answers_of_others_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_report(content)
