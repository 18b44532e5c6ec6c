"""`casaba node-clean`: remove from this node everything that casaba made."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from casaba.cli.exits import exit_code_of
from casaba.errors import InvalidInput
from casaba.settings.host_paths import HostPaths
from casaba.settings.uninstall import NodeCleanSettings


def main(arguments: Sequence[str]) -> int:
    """Clean this node; returns the exit code."""
    flags = _parser().parse_args(arguments)
    return exit_code_of("node-clean", lambda: _clean(settings_from(flags)))


def _clean(settings: NodeCleanSettings) -> None:
    from casaba.services.uninstall.node import clean_node

    for line in clean_node(settings):
        print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba node-clean",
        description="Remove everything that casaba made on this node, once its agent has ended.",
    )
    paths, own = HostPaths(), NodeCleanSettings()
    add = parser.add_argument
    add("--host-root", type=Path, default=own.host_root, help="where the host's / is seen")
    add("--kubelet-dir", type=Path, default=paths.kubelet_dir, help="as the host names it")
    add("--cdi-dir", type=Path, default=paths.cdi_dir, help="as the host names it")
    add("--run-dir", type=Path, default=paths.run_dir)
    add("--state-dir", type=Path, default=paths.state_dir)
    add("--force", action="store_true", help="also while claims are prepared")
    return parser


def settings_from(flags: argparse.Namespace) -> NodeCleanSettings:
    """The settings that the flags describe; raises InvalidInput."""
    for name in ("host_root", "kubelet_dir", "cdi_dir", "run_dir", "state_dir"):
        _require_absolute(f"--{name.replace('_', '-')}", getattr(flags, name))
    return NodeCleanSettings(
        host_root=flags.host_root,
        paths=HostPaths(
            run_dir=flags.run_dir,
            state_dir=flags.state_dir,
            kubelet_dir=flags.kubelet_dir,
            cdi_dir=flags.cdi_dir,
        ),
        force=flags.force,
    )


def _require_absolute(flag: str, path: Path) -> None:
    if not path.is_absolute() or ".." in path.parts:
        raise InvalidInput(f"{flag} {path}: give a path from / on, without ..")
    if flag in ("--run-dir", "--state-dir") and len(path.parts) < 3:
        raise InvalidInput(f"{flag} {path}: it is removed whole; give casaba's own folder")
