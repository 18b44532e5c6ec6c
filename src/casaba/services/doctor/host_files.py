"""What lies on this machine: CDI specs, guards, the checkpoint, leftovers, and how much room."""

import ctypes
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from casaba.errors import InvalidInput
from casaba.policy.diagnosis.host.observations import CdiSeen, CheckpointSeen, GuardSeen, RoomSeen
from casaba.settings.doctor import DoctorSettings
from casaba.settings.host_paths import GUARD_LIBRARY
from casaba.wire import cdi
from casaba.wire.checkpoint import parse_entry

ETC_CDI = "etc/cdi"
LEFTOVERS = ("usr/local/vgpu", "tmp/vgpu", "tmp/vgpulock")
"""Folders of HAMi's device plugin (libvgpu.so, per-container caches, its lock)."""

_PRELOAD = "etc/ld.so.preload"
_OLD_GUARD = "libvgpu"
_SPEC_SUFFIXES = (".json", ".yaml", ".yml")
_SPEC_LIMIT_BYTES = 16 << 20
_MIB = 1 << 20
_TIMEX_BYTES = 512
_TIME_ERROR = 5
"""What adjtimex(2) returns while nothing keeps the clock."""


def look_at_cdi(settings: DoctorSettings) -> CdiSeen:
    """Specs in both usual folders; a runtime reads all of them."""
    folder = settings.paths.cdi_dir
    ours, damaged = [], []
    for path in _specs(folder, settings.host_root / ETC_CDI):
        if (problem := _spec_problem(path)) is not None:
            damaged.append(f"{path} ({problem})")
        elif path.parent == folder and path.name.startswith(cdi.VENDOR):
            ours.append(path.name)
    return CdiSeen(
        folder=str(folder), exists=folder.is_dir(), specs=tuple(ours), damaged=tuple(damaged)
    )


def _specs(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                if path.suffix in _SPEC_SUFFIXES and not path.name.startswith("."):
                    yield path


def _spec_problem(path: Path) -> str | None:
    try:
        if path.stat().st_size > _SPEC_LIMIT_BYTES:
            return "too large"
        content = path.read_text()
        spec = json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, yaml.YAMLError, RecursionError):
        return f"no {path.suffix[1:].upper()}"
    return _shape_problem(spec)


def _shape_problem(spec: Any) -> str | None:
    """The fields that every version of CDI asks for."""
    if not isinstance(spec, dict):
        return "no object"
    for key, form in (("cdiVersion", str), ("kind", str), ("devices", list)):
        if not isinstance(spec.get(key), form):
            return f"{key} is missing or odd"
    return None


def look_at_run_filesystem(settings: DoctorSettings) -> tuple[str, str]:
    """Our folder below /run, and the type of the file system that it is on."""
    folder = str(settings.paths.run_dir)
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, type_, *_ = line.split(" ")
        is_above = point == "/" or folder == point or folder.startswith(f"{point}/")
        if is_above and len(point) >= len(best):
            best, kind = point, type_
    return folder, kind


def look_at_guard(settings: DoctorSettings) -> GuardSeen:
    """Versions on the host."""
    folder = settings.paths.state_dir / "guard"
    versions = sorted(path for path in folder.iterdir()) if folder.is_dir() else []
    whole = [path.name for path in versions if _is_whole(path)]
    broken = [path.name for path in versions if not _is_whole(path)]
    return GuardSeen(folder=str(folder), whole=tuple(whole), broken=tuple(broken))


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (GUARD_LIBRARY, "ld.so.preload"))


def look_at_checkpoint(settings: DoctorSettings) -> CheckpointSeen:
    """Entries that can be read, and those that can't; nothing is moved aside."""
    folder = settings.paths.checkpoint_dir
    entries, damaged = 0, [path.name for path in sorted(folder.glob("*.damaged"))]
    for path in sorted(folder.glob("*.json")):
        try:
            parse_entry(path.read_bytes())
            entries += 1
        except InvalidInput:
            damaged.append(path.name)
        except OSError as error:
            reason = f"can't read {path}: {error.strerror}"
            return CheckpointSeen(
                folder=str(folder), entries=entries, damaged=tuple(damaged), unreadable=reason
            )
    return CheckpointSeen(folder=str(folder), entries=entries, damaged=tuple(damaged))


def is_clock_set() -> bool:
    """Whether something keeps the kernel's clock right; raises OSError where it does not tell."""
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "adjtimex")
    return bool(state != _TIME_ERROR)


def look_for_leftovers(settings: DoctorSettings) -> tuple[str, ...]:
    """Folders of an old HAMi that are there, and its line in the host's preload file."""
    root = settings.host_root
    found = [str(root / name) for name in LEFTOVERS if (root / name).exists()]
    preload = root / _PRELOAD
    if preload.is_file() and _OLD_GUARD in preload.read_text(errors="replace"):
        found.append(str(preload))
    return tuple(found)


def look_at_room(settings: DoctorSettings) -> tuple[RoomSeen, ...]:
    """Of the file systems that are written to."""
    paths = settings.paths
    wanted = ((paths.state_dir, 64), (paths.kubelet_dir, 16), (paths.run_dir, 16))
    return tuple(_room(folder, needed * _MIB) for folder, needed in wanted)


def _room(folder: Path, needed_bytes: int) -> RoomSeen:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    status = os.statvfs(there)
    free_bytes = status.f_bavail * status.f_frsize
    return RoomSeen(folder=str(folder), free_bytes=free_bytes, needed_bytes=needed_bytes)
