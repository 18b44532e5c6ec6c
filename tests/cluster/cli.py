"""`python -m tests.cluster …`: a real cluster for a person's hands."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import build, cleanup, helm, packages, settings
from tests.cluster.bed import Bed, gpu_node, in_use, plain_node, up
from tests.cluster.errors import BedError
from tests.cluster.node import DAEMONS, Node
from tests.cluster.settings import BedSettings, NodeSettings

_DEFAULT_NAME = "casaba"

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, call, print; the exit code comes back."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # kubectl's own options are not ours to parse.
    split = words.index("kubectl") + 1 if "kubectl" in words else len(words)
    asked = _parser().parse_args(words[:split])
    asked.kubectl_arguments = words[split:]
    try:
        if os.geteuid():
            raise BedError("the bed makes namespaces, mounts and cgroups: run it as root")
        return int(asked.action(asked) or 0)
    except BedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--name", default=_DEFAULT_NAME, help="name of the bed (%(default)s)")
    parser.add_argument("--state", type=Path, help="its folder (/var/tmp/NAME)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_build(commands)
    _add_up(commands)
    for name, action, text in (
        ("down", _down, "stop the bed and leave nothing of it"),
        ("status", _status, "show nodes, links and processes"),
        ("kubectl", _kubectl, "run kubectl as the administrator"),
    ):
        commands.add_parser(name, help=text).set_defaults(action=action)
    for name, operation, text in (
        ("cut", Node.cut, "cut a node's link to the cloud"),
        ("heal", Node.heal, "connect a node again"),
        ("reboot", Node.reboot, "end everything on a node, then boot it"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("node")
        command.set_defaults(action=_on_node, operation=operation)
    return parser


def _add_build(commands: _Commands) -> None:
    command = commands.add_parser("build", help="build the cluster's programs into the cache")
    command.add_argument("family", nargs="*", help=f"of {', '.join(build.FAMILIES)}; all if none")
    command.set_defaults(action=_build)


def _add_up(commands: _Commands) -> None:
    command = commands.add_parser("up", help="start a bed; its kubeconfig's path is printed last")
    command.add_argument("--nodes", type=int, default=2, help="GPU nodes (%(default)s)")
    command.add_argument("--plain-nodes", type=int, default=0, help="nodes without gpu=on (0)")
    command.add_argument(
        "--node-name", action="append", default=[], help="names in order (edge-1, edge-2, …)"
    )
    command.add_argument(
        "--cards", default="A10", help="models of each GPU node's cards, by comma (%(default)s)"
    )
    command.add_argument(
        "--node-monitor-grace-s",
        type=int,
        default=BedSettings.node_monitor_grace_s,
        help="silence after which a node is NotReady (%(default)s)",
    )
    command.add_argument("--agent", action="store_true", help="run the node agent on each node")
    command.add_argument(
        "--bare", action="store_true", help="without casaba's class and rights, for the chart"
    )
    command.set_defaults(action=_up)


def _build(asked: argparse.Namespace) -> None:
    packages.install_missing()
    programs = build.build(asked.family or tuple(build.FAMILIES))
    for program, path in programs.paths.items():
        print(f"{program}: {path}")
    if not asked.family:
        print(f"helm: {helm.helm()}")


def _up(asked: argparse.Namespace) -> None:
    started = time.monotonic()
    wanted = BedSettings(
        name=asked.name,
        state=_state(asked),
        nodes=_wanted_nodes(asked),
        node_monitor_grace_s=asked.node_monitor_grace_s,
        agent=asked.agent,
        bare=asked.bare,
    )
    with in_use(asked.name):
        bed = up(wanted)
    print(f"{len(bed.nodes)} nodes are Ready after {time.monotonic() - started:.1f} s")
    print(bed.kubeconfig)


def _wanted_nodes(asked: argparse.Namespace) -> tuple[NodeSettings, ...]:
    count = asked.nodes + asked.plain_nodes
    if len(asked.node_name) > count:
        raise BedError(f"{len(asked.node_name)} --node-name for {count} nodes")
    names = [*asked.node_name, *(f"edge-{i + 1}" for i in range(len(asked.node_name), count))]
    models = asked.cards.split(",")
    return tuple(
        gpu_node(index, name, models) if index <= asked.nodes else plain_node(index, name)
        for index, name in enumerate(names, start=1)
    )


def _down(asked: argparse.Namespace) -> None:
    with in_use(asked.name):
        cleanup.remove_everything(asked.name, _state(asked))


def _status(asked: argparse.Namespace) -> None:
    bed = Bed.open(_state(asked))
    print(f"kubeconfig {bed.kubeconfig}")
    for node in bed.nodes:
        ready = "Ready" if bed.node_is_ready(node.name) else "NotReady"
        link = "cut" if node.is_cut() else "connected"
        pids = (f"{daemon}={node.pid(daemon) or '-'}" for daemon in DAEMONS)
        print(f"{node.name} {node.settings.address} {ready} {link} {' '.join(pids)}")


def _kubectl(asked: argparse.Namespace) -> int:
    command = Bed.open(_state(asked)).kubectl_command()
    return subprocess.run([*command, *asked.kubectl_arguments], check=False).returncode


def _on_node(asked: argparse.Namespace) -> None:
    asked.operation(Bed.open(_state(asked)).node(asked.node))


def _state(asked: argparse.Namespace) -> Path:
    return asked.state or settings.default_state(asked.name)
