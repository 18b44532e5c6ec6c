"""Locks on single bytes of a file, as the guards hold them: fcntl(2), open file descriptions."""

import fcntl
import functools
import os
import struct

_FLOCK = "hh4xqqi4x"
"""struct flock of 64-bit Linux."""

_FREE = struct.pack("h", fcntl.F_UNLCK)


def is_locked(handle: int, offset: int) -> bool:
    """Whether anybody else holds a lock on a byte; the kernel drops it with its last holder."""
    return not fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _lock_of(offset)).startswith(_FREE)


@functools.cache
def _lock_of(offset: int) -> bytes:
    """There are as many as slots in a region and places in a schedule."""
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
