"""Identifiers, each its own type."""

import re
import uuid
from typing import NewType

from casaba.errors import InvalidInput

ClaimUid = NewType("ClaimUid", str)
"""UID of a ResourceClaim: 36 characters, lower case."""

RequestName = NewType("RequestName", str)
"""Name of a request of a claim, without a subrequest."""

GpuUuid = NewType("GpuUuid", str)
"""NVML's form: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx."""

DeviceName = NewType("DeviceName", str)
"""Name of a device in its pool, such as hami-gpu-0."""

NodeName = NewType("NodeName", str)
"""Name of a Node; also the name of its pool."""

BootId = NewType("BootId", str)
"""The kernel's boot id; differs after each start of the machine."""

CdiId = NewType("CdiId", str)
"""A fully qualified CDI device: vendor/class=name."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def claim_uid(text: str) -> ClaimUid:
    """Check a UID before it becomes a part of a path; raises InvalidInput."""
    if not _UUID.fullmatch(text):
        raise InvalidInput(f"claim UID {text!r} is not a lower-case UUID")
    return ClaimUid(text)


def request_name(text: str) -> RequestName:
    """The request of a result `main` or `main/sub`; raises InvalidInput (KEP-4816)."""
    main = text.split("/", 1)[0]
    if not _DNS_LABEL.fullmatch(main):
        raise InvalidInput(f"request {text!r} of the claim is not a DNS label")
    return RequestName(main)


def gpu_uuid_bytes(gpu: GpuUuid) -> bytes:
    """The 16 bytes that CUDA reports for the card; raises InvalidInput."""
    try:
        return uuid.UUID(gpu.removeprefix("GPU-")).bytes
    except ValueError:
        raise InvalidInput(f"{gpu!r} is not a GPU UUID (GPU-xxxxxxxx-xxxx-…)") from None


def gpu_uuid_text(raw: bytes) -> GpuUuid:
    """NVML's form of CUDA's 16 bytes."""
    return GpuUuid(f"GPU-{uuid.UUID(bytes=raw)}")
