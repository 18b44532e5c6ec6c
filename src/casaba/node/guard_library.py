"""The guard on the host: one folder per content, never rewritten, since running pods map it."""

import hashlib
import platform
from importlib.resources import files
from pathlib import Path, PurePath

from casaba.errors import HostError
from casaba.node.files import explained, remove_unfinished, write_whole
from casaba.settings import _host_paths as fixed
from casaba.settings.host_paths import CONTAINER_PRELOAD_FILE, GUARD_LIBRARY
from casaba.wire import cdi

_EXECUTABLE = 0o755
_PRELOAD = "ld.so.preload"

_UNFINISHED_S = 60.0
"""Another agent that is just installing needs less."""


def native_dir() -> Path:
    """The package's native parts for this machine; raises HostError when they were not built."""
    folder = Path(str(files("casaba"))) / "_native" / platform.machine()
    if not (folder / GUARD_LIBRARY).is_file():
        raise HostError(
            f"{folder / GUARD_LIBRARY} is missing: run `make native` in the source tree, "
            "or install casaba from its wheel"
        )
    return folder


def guard_version(library: bytes, release: str) -> str:
    """`<release>-<12 hex digits of the library's SHA-256>`, the name of its folder."""
    return f"{release}-{hashlib.sha256(library).hexdigest()[:12]}"


def install_guard(source: Path, state_dir: Path, release: str) -> str:
    """Put the guard and its preload file below the state folder, if they are not there yet.

    Returns its version; raises HostError.
    """
    with explained("read", source):
        library = source.read_bytes()
    version = guard_version(library, release)
    folder = state_dir / "guard" / version
    wanted = {
        folder / GUARD_LIBRARY: (library, _EXECUTABLE),
        folder / _PRELOAD: (f"{_inside(version) / GUARD_LIBRARY}\n".encode(), 0o644),
    }
    remove_unfinished(folder, older_than_s=_UNFINISHED_S)
    for path, (content, mode) in wanted.items():
        if not path.exists():
            write_whole(path, content, mode=mode, durable=True)
    return version


def guard_spec(state_dir: Path) -> bytes:
    """The CDI spec that mounts a guard and `/etc/ld.so.preload`, read-only.

    It has a device for every version on the host: a container that is started again in its pod
    asks for the one that its claim was prepared with.
    """
    installed = sorted(folder for folder in (state_dir / "guard").iterdir() if _is_whole(folder))
    return cdi.build_spec(cdi.GUARD_CLASS, tuple(_guard_device(folder) for folder in installed))


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (GUARD_LIBRARY, _PRELOAD))


def _guard_device(folder: Path) -> cdi.CdiDevice:
    library = _inside(folder.name) / GUARD_LIBRARY
    mounts = (
        cdi.BindMount(host=folder / GUARD_LIBRARY, container=library),
        cdi.BindMount(host=folder / _PRELOAD, container=CONTAINER_PRELOAD_FILE),
    )
    return cdi.CdiDevice(name=folder.name, mounts=mounts)


def _inside(version: str) -> PurePath:
    """The container side of the guard's folder is fixed, wherever the host keeps it."""
    return PurePath(fixed.STATE_DIR) / "guard" / version
