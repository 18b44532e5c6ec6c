"""In which form a client wants answers: objects, tables for people, or metadata alone. Pure.

Source: Kubernetes API concepts, "Receiving resources as Tables" and "Metadata-only fetches".
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from casaba.simulation.api_server.listing import Page
from casaba.simulation.api_server.media_types import accepted_types, not_acceptable
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.tables import table
from casaba.simulation.api_server.watch import WatchEvent
from casaba.simulation.api_server.watch_log import whole_json

_META_GROUP = "meta.k8s.io"
_ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""As the real server lists them, though this one answers in JSON only."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How to show objects."""

    kind: Literal["Object", "Table", "PartialObjectMetadata"] = "Object"
    include_object: str = ""
    """What rows of a table hold of their objects: None, Metadata or Object."""


def form(accept: str, include_object: str = "", *, is_list: bool = False) -> Form:
    """The best acceptable form of an Accept header; raises ApiError 406."""
    for offered in accepted_types(accept):
        shape, group, version = offered.form
        if not offered.is_json or (shape and (group, version) != (_META_GROUP, "v1")):
            continue
        match shape:
            case "":
                return Form()
            case "Table":
                return Form(kind="Table", include_object=include_object)
            case "PartialObjectMetadata" if not is_list:
                return Form(kind="PartialObjectMetadata")
            case "PartialObjectMetadataList" if is_list:
                return Form(kind="PartialObjectMetadata")
    raise not_acceptable(*_ACCEPTED)


def one_json(
    wanted: Form, info: ResourceInfo, object_: Object, *, with_columns: bool = True
) -> bytes:
    """One object."""
    match wanted.kind:
        case "Table":
            version = object_["metadata"].get("resourceVersion", "")
            included = wanted.include_object
            rows = table(info, [object_], version, included, with_columns=with_columns)
            return msgspec.json.encode(rows)
        case "PartialObjectMetadata":
            return msgspec.json.encode(_metadata_only(object_))
        case _:
            return msgspec.json.encode(object_)


def list_json(wanted: Form, info: ResourceInfo, page: Page) -> bytes:
    """One page of a list."""
    if wanted.kind == "Table":
        rows = table(
            info,
            [found.object for found in page.items],
            str(page.version),
            wanted.include_object,
            continue_token=page.continue_token,
            remaining=page.remaining,
        )
        return msgspec.json.encode(rows)
    metadata = _list_metadata(page)
    if wanted.kind == "PartialObjectMetadata":
        head: Object = {"kind": "PartialObjectMetadataList", "apiVersion": f"{_META_GROUP}/v1"}
        items = [_metadata_only(found.object) for found in page.items]
        return msgspec.json.encode({**head, "metadata": metadata, "items": items})
    head = {"kind": f"{info.kind}List", "apiVersion": info.api_version, "metadata": metadata}
    start = msgspec.json.encode(head)[:-1] + b',"items":['
    return start + b",".join([found.fields for found in page.items]) + b"]}"


def event_line(
    wanted: Form, info: ResourceInfo, event: WatchEvent, *, with_columns: bool = True
) -> bytes:
    """One line of a watch; that of an object is made once for all watches that see it so."""
    if wanted.kind != "Object":
        shown = one_json(wanted, info, event.found.object, with_columns=with_columns)
        return line(event.kind, shown)
    change = event.change
    if change is None or event.found is not change.now:
        return line(event.kind, whole_json(info, event.found))
    made = change.lines.get(event.kind)
    if made is None:
        made = change.lines[event.kind] = line(event.kind, whole_json(info, event.found))
    return made


def bookmark_line(
    wanted: Form, info: ResourceInfo, version: int, *, ends_state: bool = False
) -> bytes:
    """A line that only tells a version; with `ends_state` also that the state has been told."""
    metadata: Object = {"resourceVersion": str(version)}
    if ends_state:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    bare: Object = {"kind": info.kind, "apiVersion": info.api_version, "metadata": metadata}
    if wanted.kind == "PartialObjectMetadata":
        bare = _metadata_only(bare)
    if wanted.kind == "Table":
        rows = [{"cells": [], "object": _metadata_only(bare)}]
        bare = {"kind": "Table", "apiVersion": f"{_META_GROUP}/v1", "metadata": metadata}
        bare |= {"columnDefinitions": [], "rows": rows}
    return line("BOOKMARK", msgspec.json.encode(bare))


def line(kind: str, object_json: bytes) -> bytes:
    """One event of a watch stream."""
    return b'{"type":"' + kind.encode() + b'","object":' + object_json + b"}\n"


def _list_metadata(page: Page) -> Object:
    metadata: Object = {"resourceVersion": str(page.version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _metadata_only(object_: Object) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{_META_GROUP}/v1",
        "metadata": object_["metadata"],
    }
