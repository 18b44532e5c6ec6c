"""`casaba node-agent`: flags and environment to settings, signals to a clean end."""

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from casaba.cli.daemon import add_log_level, run_daemon
from casaba.errors import InvalidInput
from casaba.model.quantity import parse
from casaba.settings.budgets import BudgetSettings
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import GPU_NODE_LABEL, NodeAgentSettings

_CARD_RESOURCES = "resources with which a device plugin offers the cards; * for any characters"

_NODE_LABEL = "a label that the node must carry, default: gpu=on; given again: all of them"

_HOST_DRIVER_ROOT = "the driver root's path on the host; default: --driver-root"

_UMASK = 0o022
"""What is made is readable for tenants from the first moment on, whoever started the agent."""


def main(arguments: Sequence[str]) -> int:
    """Run the agent; returns the exit code."""
    flags = _parser().parse_args(arguments)
    os.umask(_UMASK)
    return run_daemon("node-agent", flags.log_level, lambda: _work(settings_from(flags)))


async def _work(settings: NodeAgentSettings) -> None:
    from casaba.services.node_agent.main import run_node_agent

    await run_node_agent(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba node-agent", description="Serve this node's cards to Kubernetes."
    )
    paths, settings, budgets = HostPaths(), NodeAgentSettings(node_name=""), BudgetSettings()
    add = parser.add_argument
    add("--node-name", default=os.environ.get("NODE_NAME") or socket.gethostname())
    add("--node-label", action="append", metavar="KEY=VALUE", help=_NODE_LABEL)
    add("--kubeconfig", type=Path, help="default: the pod's service account")
    add("--kubelet-dir", type=Path, default=paths.kubelet_dir)
    add("--cdi-dir", type=Path, default=paths.cdi_dir)
    add("--run-dir", type=Path, default=paths.run_dir)
    add("--state-dir", type=Path, default=paths.state_dir)
    add("--driver-root", type=Path, default=settings.driver_root)
    add("--host-driver-root", type=Path, help=_HOST_DRIVER_ROOT)
    add("--dev-root", type=Path, help="default: the driver root")
    add("--sysfs-root", type=Path, default=settings.sysfs_root)
    add("--boot-id-path", type=Path, default=settings.boot_id_path)
    add("--nvidia-ctk", type=Path, help="default: from PATH")
    add("--nvidia-cdi-hook", type=Path, help="default: from PATH")
    add("--card-spec", type=Path, help="CDI spec of the cards; default: made by nvidia-ctk")
    add("--pod-uid", default=os.environ.get("POD_UID"))
    add("--context-allowance", default=str(budgets.context_allowance_bytes), help="quantity")
    add("--context-size", default=str(budgets.context_size_bytes), help="quantity")
    add("--no-announce", action="store_true", help="the guard writes no line on stderr")
    add("--metrics-address", default=settings.metrics_address, help="host:port of /metrics")
    add("--legacy-metrics", action="store_true", help="serve HAMi's names of before 2.9 too")
    add("--card-resources", default=",".join(settings.card_resources), help=_CARD_RESOURCES)
    add("--hami-silence-s", type=float, default=settings.hami_silence_s)
    add("--driver-check-s", type=float, default=settings.driver_check_s)
    add("--crippled-retry-s", type=float, default=settings.crippled_retry_s)
    add("--proc-root", type=Path, default=settings.proc_root)
    add_log_level(parser)
    return parser


def settings_from(flags: argparse.Namespace) -> NodeAgentSettings:
    """The settings that the flags describe; raises InvalidInput."""
    return NodeAgentSettings(
        node_name=flags.node_name,
        node_labels=tuple(map(_label, flags.node_label or ())) or (GPU_NODE_LABEL,),
        kubeconfig=flags.kubeconfig,
        paths=HostPaths(
            run_dir=flags.run_dir,
            state_dir=flags.state_dir,
            kubelet_dir=flags.kubelet_dir,
            cdi_dir=flags.cdi_dir,
        ),
        driver_root=flags.driver_root,
        host_driver_root=_host_driver_root(flags),
        dev_root=flags.dev_root,
        sysfs_root=flags.sysfs_root,
        boot_id_path=flags.boot_id_path,
        nvidia_ctk=flags.nvidia_ctk,
        nvidia_cdi_hook=flags.nvidia_cdi_hook,
        card_spec=flags.card_spec,
        pod_uid=flags.pod_uid,
        metrics_address=flags.metrics_address,
        legacy_metrics=flags.legacy_metrics,
        card_resources=tuple(filter(None, flags.card_resources.split(","))),
        hami_silence_s=flags.hami_silence_s,
        driver_check_s=flags.driver_check_s,
        crippled_retry_s=flags.crippled_retry_s,
        proc_root=flags.proc_root,
        budgets=BudgetSettings(
            context_allowance_bytes=parse(flags.context_allowance),
            context_size_bytes=parse(flags.context_size),
            announce=not flags.no_announce,
        ),
    )


def _label(text: str) -> tuple[str, str]:
    """Key and value, which may be empty; raises InvalidInput."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInput(f"--node-label {text}: write it as KEY=VALUE, such as gpu=on")
    return key, value


def _host_driver_root(flags: argparse.Namespace) -> Path | None:
    """None where the host sees the driver at the same path; raises InvalidInput."""
    given: Path | None = flags.host_driver_root
    if given is None or given == flags.driver_root:
        return None
    if not given.is_absolute():
        raise InvalidInput(f"--host-driver-root {given}: give a path from / on, such as /")
    if flags.driver_root == Path("/"):
        raise InvalidInput(
            f"--host-driver-root {given}: all paths of the host begin with --driver-root /; mount "
            "the driver at a folder of its own, such as /host, and give that as --driver-root"
        )
    return given
