"""A pod, read only as far as decisions about its cards look at it.

Most of a pod as the API server sends it is managed fields, volumes and status; they are skipped,
not decoded.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct


class _Outline(Struct, frozen=True, gc=False, rename="camel"):
    """What is not there stays away; of what is there, anything may be wrong."""


class _Metadata(_Outline, frozen=True):
    labels: Any = UNSET
    annotations: Any = UNSET


class _Spec(_Outline, frozen=True):
    containers: Any = UNSET
    init_containers: Any = UNSET
    ephemeral_containers: Any = UNSET
    resources: Any = UNSET
    resource_claims: Any = UNSET
    node_name: Any = UNSET
    scheduler_name: Any = UNSET


class _Pod(_Outline, frozen=True):
    metadata: _Metadata | msgspec.UnsetType = UNSET
    spec: _Spec | msgspec.UnsetType = UNSET


_decode = msgspec.json.Decoder(_Pod).decode


def outlined(raw: Raw) -> dict[str, Any] | None:
    """The pod's fields that are read here; None where it, its metadata or spec is no object."""
    try:
        str(memoryview(raw), "utf-8")  # also of what is skipped
        outline: dict[str, Any] = msgspec.to_builtins(_decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return outline
