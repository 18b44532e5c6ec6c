"""The machine itself: memory file systems, clock, room, and what an old HAMi has left; pure."""

from casaba.policy.diagnosis.finding import Check, Verdict, check, few, ok, warning, wrong
from casaba.policy.diagnosis.host.observations import AS_ROOT, HostObservations, RoomSeen

_MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")


def judge_run_filesystem(seen: tuple[str, str]) -> Verdict:
    """What belongs to a boot must not outlive it."""
    folder, kind = seen
    if kind in _MEMORY_FILESYSTEMS:
        return ok(f"{folder} is on {kind}")
    return warning(
        f"{folder} is on {kind}, which survives a reboot",
        "mount a tmpfs at /run, as systemd does",
    )


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


RUN_FILESYSTEM: Check[HostObservations] = check(
    "node.run",
    "/run in memory",
    lambda seen: seen.run_filesystem,
    judge_run_filesystem,
    advice=AS_ROOT,
)
CLOCK: Check[HostObservations] = check(
    "node.clock", "clock", lambda seen: seen.clock_is_set, judge_clock
)
LEFTOVERS: Check[HostObservations] = check(
    "node.leftovers", "leftovers of HAMi", lambda seen: seen.leftovers, judge_leftovers
)
ROOM: Check[HostObservations] = check(
    "node.room", "disk room", lambda seen: seen.room, judge_room, advice=AS_ROOT
)
