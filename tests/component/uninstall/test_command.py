"""`casaba uninstall` as the chart's jobs run it."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from casaba.cli import uninstall
from casaba.simulation.api_server import SimulatedApiServer

_PROGRAM = "import sys; from casaba.cli.uninstall import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--timeout-s=0"], "--timeout-s 0: give more than 0 seconds"),
        (["--timeout-s=nan"], "give more than 0 seconds"),
        (["--secret=x"], "they belong to --leftovers"),
        (["--leftovers", "--kubeconfig=/nowhere/config"], "/nowhere/config"),
    ],
)
def test_wrong_use_is_told(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert uninstall.main(flags) == 2
    assert told in capsys.readouterr().err


def agent_pod() -> dict[str, object]:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}
    metadata = {
        "name": "agent-x",
        "namespace": "default",
        "ownerReferences": [{**owner, "controller": True}],
    }
    spec = {"nodeName": "gpu-7", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def test_it_ends_when_its_job_is_deleted(tmp_path: Path) -> None:
    cleaner, kubeconfig = tmp_path / "cleaner.json", tmp_path / "kubeconfig"
    cleaner.write_text('{"kind": "DaemonSet", "metadata": {"name": "cleaner"}}')
    async with SimulatedApiServer() as server:
        server.seed([agent_pod()])
        kubeconfig.write_text(json.dumps(server.kubeconfig("admin", ("system:masters",))))
        flags = ["--namespace=default", "--agent=agent", f"--cleaner={cleaner}"]
        command = [sys.executable, "-c", _PROGRAM, f"--kubeconfig={kubeconfig}", *flags]
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        assert process.stdout is not None
        assert b"node gpu-7" in await process.stdout.readline()
        process.terminate()
        _, stderr = await process.communicate()
    assert process.returncode == 143
    assert stderr == b"casaba uninstall: ended by a signal; started again it goes on from here\n"
