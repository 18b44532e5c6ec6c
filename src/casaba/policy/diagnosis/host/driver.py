"""A node's driver, and the toolkit that describes its cards; pure."""

import re

from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    count,
    few,
    ok,
    skipped,
    wrong,
)
from casaba.policy.diagnosis.host.observations import (
    AS_ROOT,
    DriverSeen,
    HostObservations,
    NvmlSeen,
    ToolkitSeen,
)
from casaba.wire.node_report import NodeReport

OLDEST_DRIVER = 440
"""The first whose NVML has the functions that are used."""

_INSTALL_DRIVER = (
    "install NVIDIA's driver on the node, or the GPU Operator; with its driver container set "
    "drivers.nvidia.containerDriver=true"
)

_CONTAINER_DRIVER = {
    "/": "false",
    "/host": "false",
    "/run/nvidia/driver": "true",
    "/host/run/nvidia/driver": "true",
}
"""The chart's value for each place; `/host` is the host as the agent's pod sees it."""


def judge_driver(driver: DriverSeen) -> Verdict:
    """NVML below the root that was given; a wrong root has it somewhere else."""
    if driver.library:
        return ok(driver.library)
    if driver.elsewhere:
        found = driver.elsewhere[0]
        value = _CONTAINER_DRIVER.get(found)
        chart = f" (drivers.nvidia.containerDriver={value})" if value else ""
        return wrong(
            f"no libnvidia-ml.so.1 below {driver.root}, but below {few(driver.elsewhere)}",
            f"give --driver-root={found}{chart}",
        )
    return wrong(f"no libnvidia-ml.so.1 below {driver.root} or any usual root", _INSTALL_DRIVER)


def judge_nvml(nvml: NvmlSeen) -> Verdict:
    """The driver answers and serves cards."""
    major = int(re.match(r"\d*", nvml.driver_version)[0] or 0)  # type: ignore[index]
    if major < OLDEST_DRIVER:
        return wrong(
            f"the driver is {nvml.driver_version}",
            f"install driver {OLDEST_DRIVER} or newer",
        )
    if not nvml.cards:
        return wrong(
            f"driver {nvml.driver_version} serves no card",
            "look at nvidia-smi and at dmesg: is a card there (lspci), and not given to a virtual "
            "machine?",
        )
    return ok(f"driver {nvml.driver_version}, {count(len(nvml.cards), 'card')}: {few(nvml.cards)}")


def _nvml(seen: HostObservations) -> NvmlSeen | Unseen | None:
    if isinstance(seen.driver, DriverSeen) and seen.driver.library is None:
        return None
    return seen.nvml


def _judge_nvml(nvml: NvmlSeen | None) -> Verdict:
    return skipped("there is no driver to ask") if nvml is None else judge_nvml(nvml)


def judge_toolkit(seen: tuple[ToolkitSeen, bool]) -> Verdict:
    """The agent describes cards with it; its image has its own."""
    toolkit, has_agent = seen
    if toolkit.missing is None:
        return ok(few(toolkit.programs))
    if has_agent:
        return skipped("not on the host; the agent has its own")
    return wrong(toolkit.missing, "install the package nvidia-container-toolkit, 1.18 or newer")


DRIVER: Check[HostObservations] = check(
    "node.driver", "driver", lambda seen: seen.driver, judge_driver, advice=AS_ROOT
)
CARDS: Check[HostObservations] = check(
    "node.nvml",
    "cards",
    _nvml,
    _judge_nvml,
    advice="does nvidia-smi work here? dmesg has the driver's words; else load its module, or "
    "run this as root",
)
TOOLKIT: Check[HostObservations] = check(
    "node.toolkit",
    "container toolkit",
    lambda seen: both(seen.toolkit, isinstance(seen.agent, NodeReport)),
    judge_toolkit,
)
