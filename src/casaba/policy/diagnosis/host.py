"""What a node must have, and whether casaba's part of it works; pure."""

import re

from casaba.policy.diagnosis.finding import (
    Check,
    Finding,
    Unseen,
    Verdict,
    both,
    check,
    count,
    few,
    findings,
    ok,
    skipped,
    warning,
    wrong,
)
from casaba.policy.diagnosis.host_observations import (
    CdiSeen,
    CheckpointSeen,
    DriverSeen,
    GuardSeen,
    HostObservations,
    KubeletSeen,
    NvmlSeen,
    RoomSeen,
    RuntimeSeen,
    ToolkitSeen,
)
from casaba.wire import cdi
from casaba.wire.node_report import NodeReport

OLDEST_DRIVER = 440
"""The first whose NVML has the functions that are used."""

_MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")
_INSTALL_DRIVER = (
    "install NVIDIA's driver on the node, or the GPU Operator; with its driver container set "
    "drivers.nvidia.containerDriver=true"
)
_CONTAINER_DRIVER = {"/": "false", "/run/nvidia/driver": "true"}


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


def judge_toolkit(seen: tuple[ToolkitSeen, bool]) -> Verdict:
    """The agent describes cards with it; its image has its own."""
    toolkit, has_agent = seen
    if toolkit.missing is None:
        return ok(few(toolkit.programs))
    if has_agent:
        return skipped("not on the host; the agent has its own")
    return wrong(toolkit.missing, "install the package nvidia-container-toolkit, 1.18 or newer")


def judge_cdi(seen: CdiSeen) -> Verdict:
    """Our specs are there, and none is damaged: a damaged one stops every container with CDI."""
    if seen.damaged:
        return wrong(
            f"damaged CDI specs: {few(seen.damaged)}",
            "remove them, or have them made anew by the one who wrote them; the agent makes its "
            "own again when it is started",
        )
    if not seen.exists:
        return wrong(
            f"there is no {seen.folder}",
            "start the agent, which makes it; is /var/run/cdi mounted into its pod?",
        )
    missing = [name for name in (cdi.CARD_SPEC_FILE, cdi.GUARD_SPEC_FILE) if name not in seen.specs]
    if missing:
        return wrong(
            f"{seen.folder} has no {few(missing)}",
            "the agent writes it when it has found the cards: is it running, and what does its log "
            "say of the driver?",
        )
    return ok(f"{count(len(seen.specs), 'spec')} of casaba in {seen.folder}")


def judge_runtime(runtime: RuntimeSeen) -> Verdict:
    """containerd 2.0 has CDI on by default, 1.7 off, and older ones know none."""
    told = f"containerd {runtime.version}" if runtime.version else "containerd"
    if runtime.cdi_enabled is False:
        return wrong(f"{told}: CDI is off in {runtime.source}", _enable(runtime.version))
    if runtime.cdi_enabled:
        return ok(f"{told}: CDI is on")
    major = _first_two(runtime.version)
    if major is None:
        return skipped("containerd is not seen from here; is it another runtime?")
    if major >= (2, 0):
        return ok(f"{told}: CDI is on by default")
    if major >= (1, 7):
        return wrong(f"{told}: CDI is off by default", _enable(runtime.version))
    return wrong(f"{told} knows no CDI", "use containerd 2.0 or newer")


def _enable(version: str | None) -> str:
    two = _first_two(version)
    section = (
        "io.containerd.grpc.v1.cri" if two and two < (2, 0) else "io.containerd.cri.v1.runtime"
    )
    return (
        f'set enable_cdi = true under [plugins."{section}"] in /etc/containerd/config.toml and '
        "start containerd again"
    )


def _first_two(version: str | None) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def judge_kubelet(kubelet: KubeletSeen) -> Verdict:
    """Sockets of both sides."""
    if not kubelet.has_registry:
        return wrong(
            f"{kubelet.folder} has no plugins_registry",
            "is the kubelet running, and is this its --root-dir? Else give --kubelet-dir",
        )
    if not kubelet.plugin_sockets or not kubelet.registration_sockets:
        return wrong(
            f"the driver has no sockets below {kubelet.folder}",
            "is the agent running? Its DaemonSet needs plugins and plugins_registry mounted",
        )
    if kubelet.pods_told:
        return warning(
            kubelet.pods_told,
            "metrics lack the names of pods until it answers; look at the kubelet's log",
        )
    return ok(f"{few(kubelet.plugin_sockets)}; the kubelet tells its pods")


def judge_agent(report: NodeReport) -> Verdict:
    """The agent's own word."""
    if report.problems:
        told = [f"{problem.reason}: {problem.message}" for problem in report.problems]
        return wrong(few(told), "each sentence says what to do")
    if not report.registered:
        return wrong(
            "the kubelet has not registered the driver",
            "the agent's log has the kubelet's reason",
        )
    return ok(f"casaba {report.release} serves {count(len(report.use.gpus), 'card')}")


def judge_guards(report: NodeReport) -> Verdict:
    """Processes on cards that have no guard."""
    bare = [
        f"{one.namespace}/{one.name.pod} {one.name.container} ({one.unguarded})"
        for one in report.use.guards
        if one.unguarded
    ]
    if bare:
        return wrong(
            f"processes on a card without a guard: {few(bare)}",
            "is the program linked statically, or is /etc/ld.so.preload hidden in its image? Use "
            "an image with a dynamic loader (glibc or musl) and start the pod again",
        )
    if foreign := sum(report.use.foreign.values()):
        return warning(
            f"processes on the cards that no slice limits: {foreign}",
            "nvidia-smi names them; what they use was promised to claims",
        )
    return ok("every process on a card has its guard")


def judge_run_filesystem(seen: tuple[str, str]) -> Verdict:
    """What belongs to a boot must not outlive it."""
    folder, kind = seen
    if kind in _MEMORY_FILESYSTEMS:
        return ok(f"{folder} is on {kind}")
    return warning(
        f"{folder} is on {kind}, which survives a reboot",
        "mount a tmpfs at /run, as systemd does",
    )


def judge_guard_files(guard: GuardSeen) -> Verdict:
    """Containers get library and preload file from there."""
    if guard.broken:
        return wrong(
            f"incomplete guards in {guard.folder}: {few(guard.broken)}",
            "remove those folders and start the agent again; no pod that runs uses them",
        )
    if not guard.whole:
        return wrong(f"no guard in {guard.folder}", "start the agent, which puts it there")
    return ok(f"{few(guard.whole)} in {guard.folder}")


def judge_checkpoint(seen: CheckpointSeen) -> Verdict:
    """What the agent finds after a restart."""
    if seen.unreadable:
        return wrong(seen.unreadable, f"mend the permissions or the disk below {seen.folder}")
    if seen.damaged:
        return warning(
            f"damaged entries in {seen.folder}: {few(seen.damaged)}",
            "delete them when the pods of these claims have gone; a pod of theirs that does not "
            "start has to be deleted and made again",
        )
    return ok(f"{count(seen.entries, 'prepared claim')}")


def judge_clock(is_set: bool) -> Verdict:
    """By adjtimex(2)."""
    if is_set:
        return ok("the kernel's clock is kept right")
    return warning(
        "nothing keeps the clock right, as far as the kernel knows",
        "run chrony or systemd-timesyncd: certificates and leases depend on the time",
    )


def judge_leftovers(paths: tuple[str, ...]) -> Verdict:
    """Files of an old HAMi; its preload file would take the place of the guard."""
    if not paths:
        return ok("nothing of an old HAMi")
    return warning(
        f"an old HAMi has left {few(paths)}",
        "when no pod uses them any more, remove them; a line with libvgpu.so in the host's "
        "/etc/ld.so.preload has to go as well",
    )


def judge_room(seen: tuple[RoomSeen, ...]) -> Verdict:
    """Policy files, regions, the checkpoint and the guard want to be written."""
    full = [
        f"{one.folder} ({one.free_bytes >> 20} MiB)"
        for one in seen
        if one.free_bytes < one.needed_bytes
    ]
    if full:
        return wrong(f"too little room left in {few(full)}", "make room on these file systems")
    return ok("enough room")


def _nvml(seen: HostObservations) -> NvmlSeen | Unseen | None:
    if isinstance(seen.driver, DriverSeen) and seen.driver.library is None:
        return None
    return seen.nvml


def _judge_nvml(nvml: NvmlSeen | None) -> Verdict:
    return skipped("there is no driver to ask") if nvml is None else judge_nvml(nvml)


_ROOT = (
    "run it as root on the node, or in the agent's pod: kubectl exec POD -- casaba doctor --node"
)

HOST_CHECKS: tuple[Check[HostObservations], ...] = (
    check("node.driver", "driver", lambda seen: seen.driver, judge_driver, advice=_ROOT),
    check(
        "node.nvml",
        "cards",
        _nvml,
        _judge_nvml,
        advice="does nvidia-smi work here? dmesg has the driver's words; else load its module, or "
        "run this as root",
    ),
    check(
        "node.toolkit",
        "container toolkit",
        lambda seen: both(seen.toolkit, isinstance(seen.agent, NodeReport)),
        judge_toolkit,
    ),
    check("node.cdi", "CDI specs", lambda seen: seen.cdi, judge_cdi, advice=_ROOT),
    check(
        "node.runtime", "CDI in containerd", lambda seen: seen.runtime, judge_runtime, advice=_ROOT
    ),
    check("node.kubelet", "kubelet", lambda seen: seen.kubelet, judge_kubelet, advice=_ROOT),
    check(
        "node.agent",
        "agent",
        lambda seen: seen.agent,
        judge_agent,
        advice="is the agent running on this node? kubectl get pods -A -o wide "
        "-l app.kubernetes.io/component=node-agent. Its socket is for root alone",
    ),
    check("node.guards", "guards", lambda seen: seen.agent, judge_guards, advice="see the agent"),
    check(
        "node.guard-files",
        "guard on the host",
        lambda seen: seen.guard,
        judge_guard_files,
        advice=_ROOT,
    ),
    check(
        "node.checkpoint",
        "checkpoint",
        lambda seen: seen.checkpoint,
        judge_checkpoint,
        advice=_ROOT,
    ),
    check(
        "node.run",
        "/run in memory",
        lambda seen: seen.run_filesystem,
        judge_run_filesystem,
        advice=_ROOT,
    ),
    check("node.clock", "clock", lambda seen: seen.clock_is_set, judge_clock),
    check("node.leftovers", "leftovers of HAMi", lambda seen: seen.leftovers, judge_leftovers),
    check("node.room", "disk room", lambda seen: seen.room, judge_room, advice=_ROOT),
)


def diagnose_host(seen: HostObservations) -> tuple[Finding, ...]:
    """The machine itself."""
    return findings(HOST_CHECKS, seen)
