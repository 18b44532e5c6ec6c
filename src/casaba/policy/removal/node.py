"""What of a host is casaba's, and whether it may go."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from casaba.errors import CasabaError
from casaba.settings.host_paths import DRIVER_NAME, HostPaths
from casaba.wire.cdi import VENDOR, claim_of_spec_file

_SPEC = re.compile(rf"\.?{re.escape(VENDOR)}-.+")
"""Our CDI specs, those that were never written to their end too."""

_REGISTRATION = re.compile(rf"{re.escape(DRIVER_NAME)}(-[0-9a-f]{{8}})?-reg\.sock")
"""Our registration sockets, of an agent on the host and of agents in pods."""

_TOLD_CLAIMS = 5


class ClaimsPrepared(CasabaError):
    """Containers on the node may use what would be removed; nothing was."""


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """Names in the folders that casaba shares with others, and of what it keeps per claim."""

    cdi_files: tuple[str, ...] = ()
    registry_files: tuple[str, ...] = ()
    checkpoint_files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RemovalPlan:
    """Paths of the host, in this order: what makes others look at us goes first."""

    files: tuple[PurePath, ...]
    folders: tuple[PurePath, ...]


def plan_removal(paths: HostPaths, seen: NodeSeen, *, by_force: bool) -> RemovalPlan:
    """Everything that casaba made; raises ClaimsPrepared unless by force.

    The folder of the checkpoint comes last: until then a second try knows what the first knew.
    """
    if (claims := claim_uids(seen)) and not by_force:
        raise ClaimsPrepared(_refusal(claims))
    sockets = sorted(name for name in seen.registry_files if _REGISTRATION.fullmatch(name))
    specs = sorted(name for name in seen.cdi_files if _SPEC.fullmatch(name))
    return RemovalPlan(
        files=(
            *(paths.registry_dir / name for name in sockets),
            *(paths.cdi_dir / name for name in specs),
        ),
        folders=(paths.run_dir, paths.state_dir, paths.plugin_dir),
    )


def claim_uids(seen: NodeSeen) -> tuple[str, ...]:
    """Claims that are prepared: by the checkpoint, or by their spec where that can't be seen."""
    entries = _stems(seen.checkpoint_files)
    specs = {uid for name in seen.cdi_files if (uid := claim_of_spec_file(name))}
    return tuple(sorted(entries | specs))


def _stems(names: Iterable[str]) -> set[str]:
    """Of whole entries; others begin with a dot or were put aside."""
    return {
        name.removesuffix(".json")
        for name in names
        if name.endswith(".json") and not name.startswith(".")
    }


def _refusal(claims: tuple[str, ...]) -> str:
    told = ", ".join(claims[:_TOLD_CLAIMS])
    more = f" and {len(claims) - _TOLD_CLAIMS} more" if len(claims) > _TOLD_CLAIMS else ""
    return (
        f"nothing was removed: {len(claims)} prepared claim{'s' * (len(claims) > 1)} on this node, "
        f"UID {told}{more}; delete the pods that hold them (kubectl get resourceclaims -A), or "
        "give --force (chart: uninstall.force=true)"
    )
