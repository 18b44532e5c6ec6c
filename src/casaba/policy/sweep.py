"""What a stopped or killed agent, or a reboot, has left behind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from casaba.model.ids import BootId, ClaimUid
from casaba.model.prepared import CheckpointEntry
from casaba.wire.cdi import claim_of_spec_file, is_unfinished_spec


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """Names to remove: files below the CDI folder, folders below the claims folder."""

    spec_files: tuple[str, ...]
    claim_folders: tuple[str, ...]


def plan_sweep(
    entries: Mapping[ClaimUid, CheckpointEntry],
    boot_id: BootId,
    spec_files: Iterable[str],
    claim_folders: Iterable[str],
) -> SweepPlan:
    """Everything of claims that this life of the machine has not promised.

    An entry of an earlier boot stays in the checkpoint until the kubelet unprepares its claim or
    prepares it anew, but no container of it can be alive.
    """
    live = {uid for uid, entry in entries.items() if entry.boot_id == boot_id}
    return SweepPlan(
        spec_files=tuple(name for name in spec_files if _is_left_over(name, live)),
        claim_folders=tuple(name for name in claim_folders if name not in live),
    )


def _is_left_over(spec_file: str, live: set[ClaimUid]) -> bool:
    claim = claim_of_spec_file(spec_file)
    return is_unfinished_spec(spec_file) or (claim is not None and claim not in live)
