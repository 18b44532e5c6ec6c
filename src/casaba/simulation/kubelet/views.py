"""How a container sees what CDI mounts, where there are no mounts: links, and variables.

A folder of the container's own holds a link at every path that would be mounted; variables lead
the loader, the shell and the guard there. Programs that drop LD_PRELOAD get away from the guard.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from casaba.node.files import explained, make_folder, remove_tree
from casaba.settings.host_paths import CONTAINER_PRELOAD_FILE, CONTAINER_RUN_DIR
from casaba.simulation.kubelet.cdi_devices import Mount

RUN_DIR_VARIABLE = "CASABA_RUN_DIR"

_PROGRAM_FOLDERS = frozenset({"bin", "sbin"})


def make_view(folder: Path, mounts: Iterable[Mount]) -> None:
    """Make the links anew; raises HostError."""
    remove_tree(folder)
    make_folder(folder)
    for mount in mounts:
        link = _inside(folder, mount.target)
        make_folder(link.parent)
        with explained("make link", link):
            link.symlink_to(mount.source)


def view_variables(
    folder: Path, mounts: Iterable[Mount], environment: Mapping[str, str]
) -> dict[str, str]:
    """The environment with the variables that lead into the view. Raises HostError."""
    sources = {PurePath(mount.target): mount.source for mount in mounts}
    preloaded = list(_preloaded(sources))
    result = dict(environment)
    _prepend(result, "LD_PRELOAD", [sources.get(path, str(path)) for path in preloaded])
    libraries = [path for path in sources if ".so" in path.name and path not in preloaded]
    libraries = [path for path in libraries if path != CONTAINER_PRELOAD_FILE]
    _prepend(result, "LD_LIBRARY_PATH", _folders(folder, libraries))
    programs = [path for path in sources if path.parent.name in _PROGRAM_FOLDERS]
    _prepend(result, "PATH", _folders(folder, programs))
    if any(path.is_relative_to(CONTAINER_RUN_DIR) for path in sources):
        result[RUN_DIR_VARIABLE] = str(_inside(folder, str(CONTAINER_RUN_DIR)))
    return result


def _preloaded(sources: Mapping[PurePath, str]) -> Iterator[PurePath]:
    """The libraries that the mounted ld.so.preload names."""
    if (source := sources.get(PurePath(CONTAINER_PRELOAD_FILE))) is not None:
        with explained("read", Path(source)):
            text = Path(source).read_text()
        yield from map(PurePath, text.replace(":", " ").split())


def _folders(view: Path, paths: Iterable[PurePath]) -> list[str]:
    return list(dict.fromkeys(str(_inside(view, str(path.parent))) for path in paths))


def _inside(view: Path, target: str) -> Path:
    return view / target.lstrip("/")


def _prepend(environment: dict[str, str], name: str, first: list[str]) -> None:
    rest = environment.get(name)
    if parts := [*first, *([rest] if rest else [])]:
        environment[name] = ":".join(parts)
