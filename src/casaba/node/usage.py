"""What the budgets below a claims folder hold now: policy files and regions, read with pread."""

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from casaba.errors import InvalidInput
from casaba.model.usage import BudgetUsage
from casaba.node.budgets import read_bounded
from casaba.settings import _host_paths as fixed
from casaba.wire.policy_file import POLICY_BYTES, parse_policy
from casaba.wire.region_file import REGION_BYTES, lock_offset, parse_processes, parse_refusals

_FLOCK = "hh4xqqi4x"
"""struct flock of 64-bit Linux."""


def read_budgets(claims_dir: Path) -> Iterator[BudgetUsage]:
    """All budgets with their living processes; one that can't be read is left out.

    Raises HostError when a file is there and may not be read.
    """
    for folder in sorted(claims_dir.glob("*/*")):
        try:
            yield _read_budget(folder)
        except InvalidInput:
            continue  # being made, being removed, or damaged by its tenant


def _read_budget(folder: Path) -> BudgetUsage:
    policy = parse_policy(read_bounded(folder / fixed.POLICY, POLICY_BYTES))
    content = read_bounded(folder / fixed.REGION, REGION_BYTES)
    found = parse_processes(content, len(policy.cards))
    living = _living(folder / fixed.REGION, list(found))
    return BudgetUsage(
        claim=folder.parent.name,
        request=folder.name,
        policy=policy,
        processes=tuple(found[slot] for slot in living),
        refusals=parse_refusals(content),
    )


def _living(region: Path, slots: list[int]) -> list[int]:
    """The slots whose owners live: the kernel drops a process's lock with the process."""
    handle = os.open(region, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return [slot for slot in slots if _is_locked(handle, lock_offset(slot))]
    finally:
        os.close(handle)


def _is_locked(handle: int, offset: int) -> bool:
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    answer = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, wanted)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
