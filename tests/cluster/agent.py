"""How the bed runs the node agent: a host process inside the node's namespaces."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cluster.build import Programs
from tests.cluster.mounts import DRIVER_ROOT
from tests.cluster.settings import BedSettings, NodeSettings

MANIFESTS = Path(__file__).parents[2] / "examples" / "cluster"


def agent_command(settings: BedSettings, node: NodeSettings, programs: Programs) -> list[str]:
    """The agent's command line."""
    return [*agent_program(), *agent_flags(settings, node, programs)]


def agent_program() -> list[str]:
    """What runs the agent."""
    return [str(Path(sys.executable).parent / "casaba"), "node-agent"]


def agent_flags(settings: BedSettings, node: NodeSettings, programs: Programs) -> list[str]:
    """The agent's flags; its default paths are the node's own (mounts.py)."""
    folder = settings.node_folder(node.name)
    return [
        f"--node-name={node.name}",
        f"--kubeconfig={folder / 'etc' / 'agent.kubeconfig'}",
        f"--driver-root={DRIVER_ROOT}",
        f"--sysfs-root={folder / 'sysfs'}",
        f"--nvidia-ctk={programs['nvidia-ctk']}",
        f"--nvidia-cdi-hook={programs['nvidia-cdi-hook']}",
    ]
