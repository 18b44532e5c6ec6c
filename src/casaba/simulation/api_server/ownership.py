"""The entries of metadata.managedFields: managers and the fields they own (meta/v1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from casaba.simulation.api_server.field_sets import (
    EMPTY,
    FieldSet,
    from_fields_v1,
    to_fields_v1,
)
from casaba.simulation.api_server.requests import Object

APPLY, UPDATE = "Apply", "Update"


@dataclass(frozen=True, kw_only=True, order=True)
class Manager:
    """One entry's identity; an applier is the same in every version of the API."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What tells managers apart."""
        version = "" if self.operation == APPLY else self.api_version
        return self.name, self.operation, version, self.subresource


@dataclass(frozen=True)
class Owned:
    """One entry's fields, and when it last changed."""

    manager: Manager
    fields: FieldSet = EMPTY
    time: str = ""
    written: Object | None = field(default=None, compare=False, repr=False)
    """The entry that it was read from, and becomes again."""


@dataclass(frozen=True)
class Ownership:
    """All entries of an object, by the manager's key."""

    entries: Mapping[tuple[str, ...], Owned] = field(default_factory=dict)

    def of(self, manager: Manager) -> FieldSet:
        """What a manager owns."""
        entry = self.entries.get(manager.key)
        return entry.fields if entry else EMPTY

    def sets(self) -> Mapping[tuple[str, ...], FieldSet]:
        """Who owns what, without since when."""
        return {key: entry.fields for key, entry in self.entries.items()}

    def owning(self, manager: Manager, fields: FieldSet, time: str = "") -> "Ownership":
        """With the manager's fields replaced; a time also replaces the time."""
        entries = dict(self.entries)
        known = entries.pop(manager.key, Owned(manager))
        if fields:
            entries[manager.key] = Owned(manager, fields, time or known.time)
        return Ownership(entries)

    def without(self, fields: FieldSet, *, but: Manager) -> "Ownership":
        """With the fields taken from every manager but one."""
        entries = {}
        for key, entry in self.entries.items():
            if key != but.key and not entry.fields.isdisjoint(fields):
                entry = replace(entry, fields=entry.fields - fields, written=None)
            if entry.fields:
                entries[key] = entry
        return Ownership(entries)


def read_ownership(document: Object) -> Ownership:
    """The ownership that an object carries; one that can't be read is none."""
    entries = {}
    try:
        for entry in document.get("metadata", {}).get("managedFields") or ():
            owned = _read_entry(entry)
            entries[owned.manager.key] = owned
    except (ValueError, KeyError, TypeError, AttributeError):
        return Ownership()
    return Ownership(entries)


def _read_entry(entry: Object) -> Owned:
    manager = Manager(
        name=entry.get("manager", ""),
        operation=entry["operation"],
        api_version=entry["apiVersion"],
        subresource=entry.get("subresource", ""),
    )
    return Owned(manager, from_fields_v1(entry.get("fieldsV1", {})), entry.get("time", ""), entry)


def with_ownership(document: Object, ownership: Ownership) -> Object:
    """The object with the ownership written into it."""
    metadata = {
        name: value
        for name, value in document.get("metadata", {}).items()
        if name != "managedFields"
    }
    if ownership.entries:
        entries = sorted(ownership.entries.values(), key=_order)
        metadata["managedFields"] = [_written_entry(entry) for entry in entries]
    return {**document, "metadata": metadata}


def _order(entry: Owned) -> tuple[str, ...]:
    manager = entry.manager
    return (
        manager.operation,
        entry.time,
        manager.name,
        manager.api_version,
        manager.subresource,
    )


def _written_entry(entry: Owned) -> Object:
    if entry.written is not None:
        return entry.written
    manager = entry.manager
    written = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(entry.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in written.items() if value or name == "fieldsV1"}


def unmanaged(document: Object) -> Object:
    """The object without its managedFields."""
    return with_ownership(document, Ownership())
