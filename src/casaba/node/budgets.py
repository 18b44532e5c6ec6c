"""Policy files and regions below the claims folder: `<claim uid>/<request>/{policy,region}`.

Both are bind-mounted into containers by inode: once there, a file is changed in place and never
replaced while its claim lives.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from casaba.errors import HostError, InvalidInput
from casaba.model.ids import ClaimUid
from casaba.model.limits import Policy
from casaba.node.files import explained, make_folder, remove_tree, write_whole
from casaba.settings import _host_paths as fixed
from casaba.wire.policy_file import POLICY_BYTES, build_policy, change_policy, parse_policy
from casaba.wire.region_file import REGION_BYTES, build_region, is_region

POLICY_MODE = 0o444
"""A tenant reads its limits."""

REGION_MODE = 0o666
"""A tenant of any user id writes its accounting."""


def ensure_budget(folder: Path, policy: Policy) -> None:
    """Make a budget's files, or bring the limits up to date; accounting is kept.

    Raises HostError.
    """
    _ensure_region(folder / fixed.REGION)
    _ensure_policy(folder / fixed.POLICY, policy)


def _ensure_region(path: Path) -> None:
    """A region that fits is kept: its slots belong to live processes."""
    if not is_region(read_bounded(path, REGION_BYTES)):
        write_whole(path, build_region(), mode=REGION_MODE, durable=False)


def _ensure_policy(path: Path, policy: Policy) -> None:
    content = read_bounded(path, POLICY_BYTES)
    try:
        current = parse_policy(content)
    except InvalidInput:
        write_whole(path, build_policy(policy), mode=POLICY_MODE, durable=False)
        return
    if (current.cards, current.announce) != (policy.cards, policy.announce):
        _change(path, content, policy)


def _change(path: Path, content: bytes, policy: Policy) -> None:
    with explained("change", path):
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for offset, part in change_policy(content, policy):
                os.pwrite(handle, part, offset)
        finally:
            os.close(handle)


def read_bounded(path: Path, size: int) -> bytes:
    """At most one byte more than `size`, so that a wrong size shows; empty when there is no file.

    Never mapped: a tenant may truncate its region at any time.
    """
    try:
        with path.open("rb") as file:
            return file.read(size + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise HostError(f"can't read {path}: {error.strerror}") from error


def remove_claim(claims_dir: Path, uid: ClaimUid) -> None:
    """Remove all budgets of a claim; raises HostError."""
    remove_tree(claims_dir / uid)


def claims_on_disk(claims_dir: Path) -> Iterator[str]:
    """Names of the folders below the claims folder."""
    make_folder(claims_dir)
    yield from sorted(path.name for path in claims_dir.iterdir() if path.is_dir())
