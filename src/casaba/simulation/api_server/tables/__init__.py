"""What `kubectl get` prints: objects as a Table, with the columns of the real server."""

import time
from collections.abc import Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import bad_request
from casaba.simulation.api_server.tables.columns import Column, Printer
from casaba.simulation.api_server.tables.kinds import printer_of

__all__ = ["table"]

_VERSION = "meta.k8s.io/v1"


def table(
    info: ResourceInfo,
    objects: Sequence[Object],
    resource_version: str,
    include_object: str,
    *,
    continue_token: str = "",
    remaining: int | None = None,
    with_columns: bool = True,
    now_s: float | None = None,
) -> Object:
    """Objects of one resource as a meta.k8s.io/v1 Table.

    `include_object` is None, Metadata (also for "") or Object. A watch names the columns in its
    first event only. Ages count to `now_s`, by default the clock. Raises ApiError 400.
    """
    _check(include_object)
    printer = printer_of(info)
    now_s = time.time() if now_s is None else now_s
    columns = [_definition(column) for column in printer.columns] if with_columns else None
    return {
        "kind": "Table",
        "apiVersion": _VERSION,
        "metadata": _list_metadata(resource_version, continue_token, remaining),
        "columnDefinitions": columns,
        "rows": [_row(printer, object_, include_object, now_s) for object_ in objects],
    }


def _list_metadata(version: str, continue_token: str, remaining: int | None) -> Object:
    metadata: Object = {"resourceVersion": version}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return metadata


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(printer: Printer, object_: Object, include_object: str, now_s: float) -> Object:
    row: Object = {"cells": printer.cells(object_, now_s)}
    if conditions := printer.conditions(object_):
        row["conditions"] = conditions
    row["object"] = _included(object_, include_object)
    return row


def _check(include_object: str) -> None:
    if include_object not in ("", "None", "Metadata", "Object"):
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{include_object}\": must be 'Metadata', 'Object', 'None', or empty"
        )


def _included(object_: Object, include_object: str) -> Object | None:
    match include_object:
        case "Object":
            return object_
        case "None":
            return None
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _VERSION,
        "metadata": object_["metadata"],
    }
