"""`casaba demo`: the whole system on this machine, and that its slices hold."""

import asyncio
import contextlib
import json as json_format
import os
import re
import signal
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from casaba.cli.demo_agent import node_agents
from casaba.cli.demo_objects import apply_file, examples, until
from casaba.cli.demo_story import NODE, Story
from casaba.cli.demo_telling import Teller
from casaba.cli.exits import exit_code_of
from casaba.cli.logs import log_to_file
from casaba.errors import CasabaError, InvalidInput
from casaba.kube import NODES
from casaba.node.guard_library import native_dir
from casaba.node.run_folders import held_folder, own_folder
from casaba.services.local_slice.main import simulated_driver_dir
from casaba.settings.simulation import LocalImage
from casaba.simulation.cluster import SimulatedCluster, simulated_cluster
from casaba.simulation.gpu_node import GpuNodeSettings

DEFAULT_NAME = "demo"
LABELS = {"gpu": "on", "apps.openyurt.io/nodepool": "worker"}
IMAGE = "registry.example/gpushare-sample:benchmark"
CLUSTER_FILES = ("cluster/deviceclass.yaml", "cluster/node-agent-rbac.yaml")

app = App(name="casaba demo", help="See the whole system at work, simulated.", version_flags=[])


@app.default
def demo(
    *,
    fast: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    keep: Annotated[bool, Parameter(negative=())] = False,
    name: str = DEFAULT_NAME,
) -> None:
    """See the whole system at work: no GPU, no cluster, no root.

    A small API server, scheduler and kubelet in this process, a virtual card, and the real node
    agent and guard. The scenario's manifests are applied as they are.

    Parameters
    ----------
    fast:
        Don't pause for a reader.
    json:
        One JSON object per step instead of a story.
    keep:
        Leave the cluster running afterwards, for your own kubectl and manifests, until Ctrl-C.
    name:
        Name of the cluster; two of one name can't run at once.
    """
    teller = Teller(as_json=json, fast=fast)
    with held_folder(own_folder(os.environ), checked_name(name)) as folder:
        log_to_file(folder / "cluster.log", "info")
        try:
            asyncio.run(_until_signal(_run(folder, teller, keep=keep)))
        except CasabaError as error:
            if any(folder.glob("*.log")):
                error.add_note(f"logs are in {folder}")
            raise


def checked_name(name: str) -> str:
    """A name that can be a folder's; raises InvalidInput."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?", name):
        raise InvalidInput(
            f"--name {name!r}: use at most 20 lower-case letters, digits and hyphens"
        )
    return name


async def _until_signal(running: Coroutine[None, None, None]) -> None:
    """Run to the end; SIGINT and SIGTERM end it in order, as KeyboardInterrupt."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await running
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(folder: Path, teller: Teller, *, keep: bool) -> None:
    node = GpuNodeSettings(name=NODE, labels=LABELS, images={IMAGE: _sample_image()})
    async with simulated_cluster(folder, [node], driver=simulated_driver_dir()) as cluster:
        for name in CLUSTER_FILES:
            await apply_file(cluster.client, name)
        await until(cluster.client, NODES, lambda _: True, f"{NODE} has joined", name=NODE)
        async with node_agents(cluster.nodes, folder):
            await Story(cluster, teller).tell()
            if keep:
                await _keep(cluster, folder, teller)
            else:
                teller.show("casaba demo --keep leaves the cluster to your own kubectl.")


def _sample_image() -> LocalImage:
    return LocalImage(folder=native_dir() / "samples")


async def _keep(cluster: SimulatedCluster, folder: Path, teller: Teller) -> None:
    """Tell how to reach the cluster, then wait for Ctrl-C or SIGTERM."""
    kubeconfig = folder / "kubeconfig"
    admin = cluster.server.kubeconfig("casaba-demo", ["system:masters"])
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json_format.dumps(admin, indent=1))
    scenario = examples().resolve() / "scenario"
    teller.show("\nThe simulated cluster goes on until Ctrl-C. In another terminal:")
    for words in (
        f"export KUBECONFIG={kubeconfig}",
        "kubectl get nodes,resourceslices",
        f"kubectl apply -f {scenario}/claim.yaml -f {scenario}/pod-native.yaml",
        "kubectl get resourceclaims,pods",
        "kubectl logs gpu-test-dra",
    ):
        teller.command(words)
    teller.show(
        "Containers are processes of this machine: an image that is not known runs its command "
        "with this machine's programs. kubectl get, describe, apply, delete, logs and events "
        "work; exec, attach and port-forward do not."
    )
    await teller.step("kept", kubeconfig=str(kubeconfig))
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("demo", parse_and_run)
