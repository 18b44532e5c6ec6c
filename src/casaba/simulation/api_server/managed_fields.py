"""Who owns which field of an object: metadata.managedFields (apimachinery, managedfields).

`tracked` books what creates, updates and patches change; applying is in `apply`.
"""

from collections.abc import Iterable, Mapping

from casaba.simulation.api_server import schemas
from casaba.simulation.api_server.field_sets import EMPTY, FieldSet, Path, is_under
from casaba.simulation.api_server.ownership import (
    UPDATE,
    Manager,
    Owned,
    Ownership,
    read_ownership,
    unmanaged,
    with_ownership,
)
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.typed_values import Difference, difference

UPDATERS = 10
"""So many updating managers are told apart; older ones become ANCIENT."""

ANCIENT = "ancient-changes"
_STRIPPED_METADATA = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_STRIPPED: frozenset[Path] = frozenset(
    {(("f", "apiVersion"),), (("f", "kind"),), (("f", "metadata"),)}
    | {(("f", "metadata"), ("f", name)) for name in _STRIPPED_METADATA}
)


_METADATA: Path = (("f", "metadata"),)
_SPEC: Path = (("f", "spec"),)
_STATUS: Path = (("f", "status"),)
_CLOSED_FOR_STATUS: Mapping[str, tuple[Path, ...]] = {
    "Pod": (
        _SPEC,
        (*_METADATA, ("f", "deletionTimestamp")),
        (*_METADATA, ("f", "ownerReferences")),
    ),
    "ResourceClaim": (_METADATA, _SPEC),
}


def tracked(
    info: ResourceInfo,
    new: Object,
    old: Object | None,
    *,
    manager: str,
    operation: str = UPDATE,
    subresource: str,
    now: str,
) -> Object:
    """The object with its managedFields as they are after a create, update or patch.

    A client may clear them with an empty list; it may not forget them by leaving them out.
    """
    known = _given_or_known(new, old, subresource)
    who = Manager(
        name=manager or "unknown",
        operation=operation,
        api_version=info.api_version,
        subresource=subresource,
    )
    if known is None:
        return unmanaged(new)
    if not known.entries and old is not None:
        # Whoever cleared the list wants no tracking until somebody applies.
        return unmanaged(new)
    changes = changed_fields(info, old, new, subresource)
    booking = capped(booked(known, who, changes, now))
    return settled(with_ownership(new, booking), old)


def settled(new: Object, old: Object | None) -> Object:
    """The new object; with the old times if nothing but times differs, so that it is no change."""
    if old is None or unmanaged(new) != unmanaged(old):
        return new
    owned, known = read_ownership(new), read_ownership(old)
    return with_ownership(new, known) if owned.sets() == known.sets() else new


def _given_or_known(new: Object, old: Object | None, subresource: str) -> Ownership | None:
    """The list to go on with; None if the client emptied it."""
    if old is None:
        return Ownership()
    given = new.get("metadata", {}).get("managedFields")
    if subresource or given is None:
        return read_ownership(old)
    if given in ([], [{}]):
        return None
    ownership = read_ownership(new)
    return ownership if ownership.entries else read_ownership(old)


def booked(known: Ownership, who: Manager, changes: Difference, now: str) -> Ownership:
    """The ownership after an update: what was set is the updater's, what is gone is nobody's."""
    set_fields = changes.added | changes.modified
    mine = known.of(who)
    others = known.without(set_fields | changes.removed, but=who)
    own = stripped((mine - changes.removed) | set_fields)
    return others.owning(who, own, now if set_fields - _STRIPPED else "")


def stripped(fields: FieldSet) -> FieldSet:
    """Without the fields that are never anybody's."""
    return fields - _STRIPPED


def changed_fields(
    info: ResourceInfo, old: Object | None, new: Object, subresource: str
) -> Difference:
    """What a write changed, as far as its door lets through."""
    schema = schemas.of(info)
    before = schemas.zero_object(schema) if old is None else unmanaged(old)
    found = difference(schema, before, unmanaged(new))
    closed = closed_fields(info, subresource)

    def visible(fields: FieldSet) -> FieldSet:
        return frozenset(path for path in fields if path and not is_under(path, closed))

    return Difference(
        added=visible(found.added), modified=visible(found.modified), removed=visible(found.removed)
    )


def closed_fields(info: ResourceInfo, subresource: str) -> tuple[Path, ...]:
    """The fields that a door does not let through: each subresource owns its own."""
    if subresource == "status":
        return _CLOSED_FOR_STATUS.get(info.kind, (_SPEC,))
    if info.kind == "Namespace" and not subresource:
        return _STATUS, _SPEC
    return (_STATUS,) if "status" in info.subresources else ()


def capped(ownership: Ownership) -> Ownership:
    """With the oldest updaters joined to one, if there are too many."""
    updaters = [entry for entry in ownership.entries.values() if entry.manager.operation == UPDATE]
    excess = len(updaters) - UPDATERS
    if excess <= 0:
        return ownership
    oldest = sorted(updaters, key=lambda entry: (entry.time, entry.manager.key))[: excess + 1]
    return _joined(ownership, oldest)


def _joined(ownership: Ownership, oldest: Iterable[Owned]) -> Ownership:
    for entry in oldest:
        ownership = ownership.owning(entry.manager, EMPTY)
        bucket = Manager(name=ANCIENT, operation=UPDATE, api_version=entry.manager.api_version)
        ownership = ownership.owning(bucket, ownership.of(bucket) | entry.fields, entry.time)
    return ownership
