"""The schedule file of each card, shared by its tenants: made once, mended in place.

Containers have it mounted by inode, so it is never replaced.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from casaba.model.ids import GpuUuid
from casaba.node.budgets import read_bounded
from casaba.node.byte_locks import is_locked
from casaba.node.files import explained, make_folder
from casaba.settings import _host_paths as fixed
from casaba.settings.host_paths import CONTAINER_RUN_DIR
from casaba.wire import cdi
from casaba.wire.schedule_file import (
    SCHEDULE_BYTES,
    build_schedule,
    is_schedule,
    parse_tenants,
    tenant_lock,
)

SCHEDULE_MODE = 0o666
"""Tenants of any user id take part."""


def schedule_spec(gpus_dir: Path, gpus: Iterable[GpuUuid]) -> bytes:
    """The CDI spec that mounts each card's schedule, writable."""
    devices = (
        cdi.CdiDevice(
            name=gpu,
            mounts=(
                cdi.BindMount(
                    host=gpus_dir / gpu,
                    container=CONTAINER_RUN_DIR / fixed.GPUS / gpu,
                    writable=True,
                ),
            ),
        )
        for gpu in gpus
    )
    return cdi.build_spec(cdi.SCHEDULE_CLASS, tuple(devices))


def ensure_schedule(path: Path, gpu: GpuUuid) -> bool:
    """Make a card's schedule, or make it whole again; whether anything had to be done.

    Tenants of a mended schedule register themselves again. Raises HostError.
    """
    if is_schedule(read_bounded(path, SCHEDULE_BYTES), gpu):
        return False
    make_folder(path.parent)
    with explained("write", path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, SCHEDULE_MODE)
        try:
            os.fchmod(handle, SCHEDULE_MODE)
            os.ftruncate(handle, SCHEDULE_BYTES)
            os.pwrite(handle, build_schedule(gpu), 0)
        finally:
            os.close(handle)
    return True


def read_tenants(path: Path, gpu: GpuUuid) -> frozenset[int]:
    """The ids of the tenants whose processes share a card's time now (wire.schedule_file).

    Nobody where there is no whole schedule: no guard knows of another then. Raises HostError.
    """
    with explained("read", path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return frozenset()
        try:
            content = os.pread(handle, SCHEDULE_BYTES + 1, 0)
            if not is_schedule(content, gpu):
                return frozenset()
            return parse_tenants(content, lambda place: is_locked(handle, tenant_lock(place)))
        finally:
            os.close(handle)
