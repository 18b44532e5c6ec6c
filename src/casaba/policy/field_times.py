"""When an object was written last, as metadata.managedFields tells (meta/v1, ManagedFieldsEntry).

The API server stamps an entry in UTC by its own clock, each time that its manager changes the value
of a field that it owns. Entries that are odd tell nothing.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any


def field_written_at(object_: Mapping[str, Any], *path: str) -> datetime | None:
    """When those wrote last that own a field; None where nobody is said to.

    One who owns other fields too may have written these: it is no earlier than the field's time.
    """
    steps = tuple(f"f:{name}" for name in path)
    return max((at for at, fields in _entries(object_) if _has(fields, steps)), default=None)


def object_written_at(object_: Mapping[str, Any]) -> datetime | None:
    """When anybody wrote last; the API server's clock has not shown less since."""
    return max((at for at, _ in _entries(object_)), default=None)


def _entries(object_: Mapping[str, Any]) -> Iterator[tuple[datetime, object]]:
    metadata = object_.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (at := _time(entry.get("time"))):
            yield at, entry.get("fieldsV1")


def _has(fields: object, steps: tuple[str, ...]) -> bool:
    for step in steps:
        if not isinstance(fields, dict) or step not in fields:
            return False
        fields = fields[step]
    return True


def _time(written: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(written) if isinstance(written, str) else None
        return at if at and at.utcoffset() is not None else None
    except ValueError:
        return None
