"""Examines this machine: everything at once, each look in a thread of its own."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from casaba.errors import CasabaError, HostError
from casaba.net.operator_socket import fetch_document
from casaba.net.pod_resources import list_pods
from casaba.node.nvidia.nvml import Nvml, find_library
from casaba.node.nvidia.toolkit import find_toolkit
from casaba.policy.diagnosis import Finding, Unseen
from casaba.policy.diagnosis.host.observations import (
    DriverSeen,
    HostObservations,
    KubeletSeen,
    NvmlSeen,
    ToolkitSeen,
)
from casaba.policy.diagnosis.host.tables import diagnose_host
from casaba.services.doctor import host_files
from casaba.services.doctor.containerd import look_at_containerd
from casaba.services.doctor.looking import aside, seen
from casaba.settings.doctor import DoctorSettings
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.node_agent import OPERATOR_SOCKET
from casaba.wire.node_report import NodeReport, parse_report

DRIVER_ROOTS = (
    "/",
    "/run/nvidia/driver",
    "/host",
    "/host/run/nvidia/driver",
    "/home/kubernetes/bin/nvidia",
    "/opt/nvidia",
    "/usr/local/nvidia",
)
"""Where a driver's files usually are: the host, the GPU Operator, our agent's pod, and others."""

_SOCKET_ANSWER_S = 5.0

_LOOKS: dict[str, Callable[[DoctorSettings], Any]] = {
    "driver": lambda settings: look_at_driver(settings),
    "nvml": lambda settings: look_at_nvml(settings),
    "toolkit": lambda settings: look_at_toolkit(settings),
    "cdi": host_files.look_at_cdi,
    "runtime": look_at_containerd,
    "agent": lambda settings: ask_agent(settings),
    "run_filesystem": host_files.look_at_run_filesystem,
    "guard": host_files.look_at_guard,
    "checkpoint": host_files.look_at_checkpoint,
    "clock_is_set": lambda _: host_files.is_clock_set(),
    "leftovers": host_files.look_for_leftovers,
    "room": host_files.look_at_room,
}


async def examine_host(settings: DoctorSettings) -> tuple[Finding, ...]:
    """This machine; never raises."""
    return diagnose_host(await observe_host(settings))


async def observe_host(settings: DoctorSettings) -> HostObservations:
    """Everything; a look that fails or hangs leaves the others alone."""
    async with asyncio.TaskGroup() as group:
        tasks: dict[str, asyncio.Task[Any]] = {
            what: group.create_task(seen(aside(partial(look, settings)), settings.look_s))
            for what, look in _LOOKS.items()
        }
        kubelet: asyncio.Task[KubeletSeen | Unseen] = group.create_task(
            seen(_kubelet(settings), settings.look_s)
        )
    found = {what: task.result() for what, task in tasks.items()}
    return HostObservations(kubelet=kubelet.result(), **found)


def _roots(settings: DoctorSettings) -> tuple[Path, ...]:
    """The root to look below, first, and others."""
    usual = tuple(settings.host_root / root.lstrip("/") for root in DRIVER_ROOTS)
    if settings.driver_root is None:
        return usual
    return (settings.driver_root, *(root for root in usual if root != settings.driver_root))


def _library(root: Path) -> Path | None:
    try:
        return find_library(root)
    except HostError:
        return None


def look_at_driver(settings: DoctorSettings) -> DriverSeen:
    """The library below the root that was given, or below the first that has one."""
    roots = _roots(settings)
    having = [root for root in roots if _library(root)]
    if settings.driver_root is None and having:
        return DriverSeen(root=str(having[0]), library=str(_library(having[0])), elsewhere=())
    here = _library(roots[0])
    elsewhere = tuple(str(root) for root in having if root != roots[0])
    return DriverSeen(root=str(roots[0]), library=str(here) if here else None, elsewhere=elsewhere)


def look_at_nvml(settings: DoctorSettings) -> NvmlSeen:
    """Ask the driver; raises HostError."""
    driver = look_at_driver(settings)
    if driver.library is None:
        raise HostError(f"there is no driver below {driver.root}")
    with Nvml(Path(driver.library)).session() as nvml:
        cards = tuple(nvml.device(index).name for index in range(nvml.device_count()))
        return NvmlSeen(driver_version=nvml.driver_version(), cards=cards)


def look_at_toolkit(_: DoctorSettings) -> ToolkitSeen:
    """The programs in PATH."""
    try:
        toolkit = find_toolkit(None, None)
    except CasabaError as error:
        return ToolkitSeen(programs=(), missing=str(error))
    programs = (str(toolkit.nvidia_ctk), str(toolkit.nvidia_cdi_hook))
    return ToolkitSeen(programs=programs, missing=None)


def ask_agent(settings: DoctorSettings) -> NodeReport:
    """The agent's own report; raises HostError and InvalidInput."""
    return parse_report(fetch_document(settings.paths.run_dir / OPERATOR_SOCKET, _SOCKET_ANSWER_S))


async def _kubelet(settings: DoctorSettings) -> KubeletSeen:
    paths = settings.paths
    plugins = sorted(path.name for path in paths.plugin_dir.glob("*.sock"))
    registered = sorted(path.name for path in paths.registry_dir.glob(f"{DRIVER_NAME}*.sock"))
    return KubeletSeen(
        folder=str(paths.kubelet_dir),
        has_registry=paths.registry_dir.is_dir(),
        plugin_sockets=tuple(plugins),
        registration_sockets=tuple(registered),
        pods_told=await _why_no_pods(paths.kubelet_dir / "pod-resources" / "kubelet.sock"),
    )


async def _why_no_pods(socket: Path) -> str | None:
    try:
        await list_pods(socket, _SOCKET_ANSWER_S)
    except HostError as error:
        return str(error)
    return None
