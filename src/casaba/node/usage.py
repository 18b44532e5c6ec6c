"""What the budgets below a claims folder hold now: policy files and regions, read with pread."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from casaba.errors import HostError, InvalidInput
from casaba.model.limits import Policy
from casaba.model.usage import BudgetUsage
from casaba.node.byte_locks import is_locked
from casaba.settings import _host_paths as fixed
from casaba.wire.policy_file import POLICY_BYTES, parse_policy
from casaba.wire.region_file import (
    CARD_BYTES,
    HEAD_BYTES,
    REGION_BYTES,
    Region,
    card_offset,
    lock_offset,
    start_bytes,
)

T = TypeVar("T")

_POLICIES = 1024
"""So many are remembered."""


def read_budgets(claims_dir: Path) -> Iterator[BudgetUsage]:
    """All budgets with their living processes; one that can't be read is left out.

    Raises HostError when a file is there and may not be read.
    """
    for folder in sorted(claims_dir.glob("*/*")):
        budget = read_budget(claims_dir, folder.parent.name, folder.name)
        if budget is not None and not budget.damaged:
            yield budget


def read_budget(claims_dir: Path, claim: str, request: str) -> BudgetUsage | None:
    """One budget with its living processes; None while it is being made or removed.

    Raises HostError when a file is there and may not be read. It is read at every scrape, for
    hundreds of budgets: hence the strings instead of paths.
    """
    folder = f"{claims_dir}/{claim}/{request}"
    try:
        policy = _read(f"{folder}/{fixed.POLICY}", _policy_of)
    except InvalidInput:
        return None
    try:
        return _read(
            f"{folder}/{fixed.REGION}", lambda handle: _used(claim, request, policy, handle)
        )
    except InvalidInput:
        return BudgetUsage(
            claim=claim, request=request, policy=policy, processes=(), refusals=0, damaged=True
        )


def _used(claim: str, request: str, policy: Policy, handle: int) -> BudgetUsage:
    region = _read_region(handle, len(policy.cards))
    processes = region.processes(lambda slot: is_locked(handle, lock_offset(slot)))
    return BudgetUsage(
        claim=claim,
        request=request,
        policy=policy,
        processes=tuple(processes.values()),
        refusals=region.refusals,
        times=region.times,
        region_id=region.id,
    )


def _read(path: str, content_of: Callable[[int], T]) -> T:
    """What a file says; raises InvalidInput also when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return content_of(handle)
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{path} is not there") from None
    except OSError as error:
        raise HostError(f"can't read {path}: {error.strerror}") from error


def _policy_of(handle: int) -> Policy:
    return _parsed_policy(os.pread(handle, POLICY_BYTES + 1, 0))


_parsed_policy = functools.lru_cache(_POLICIES)(parse_policy)
"""A policy seldom changes; what it says is read again and again."""


def _read_region(handle: int, card_count: int) -> Region:
    """A region as far as it is used; never mapped, for a tenant may truncate it at any time.

    Raises InvalidInput for another size.
    """
    status = os.fstat(handle)
    if status.st_size != REGION_BYTES:
        raise InvalidInput(f"a region of {status.st_size} bytes")
    start = _exactly(handle, HEAD_BYTES, 0)
    if (needed := start_bytes(start)) > HEAD_BYTES:
        start = _exactly(handle, needed, 0)
    cards = [_exactly(handle, CARD_BYTES, card_offset(number)) for number in range(card_count)]
    return Region(start, tuple(cards), status.st_ino)


def _exactly(handle: int, size: int, offset: int) -> bytes:
    content = os.pread(handle, size, offset)
    if len(content) != size:
        raise InvalidInput("the region has shrunk")
    return content
