"""Server-side apply: an object with what a manager wants of it, and who owns what afterwards.

The rules are those of structured-merge-diff, by the schemas' list and map types: what a manager
applied before and leaves out now goes, unless another one owns it; what another one owns and
this one wants otherwise is a conflict, unless it is forced.
"""

from typing import Any

from casaba.simulation.api_server import bodies, schemas
from casaba.simulation.api_server.defaults import set_defaults
from casaba.simulation.api_server.field_sets import FieldSet, Path, in_order, is_under, shown
from casaba.simulation.api_server.field_validation import Checked, WrongType, repeated_fields
from casaba.simulation.api_server.last_applied import allowed_conflicts, with_last_applied
from casaba.simulation.api_server.managed_fields import (
    booked,
    changed_fields,
    closed_fields,
    settled,
    stripped,
)
from casaba.simulation.api_server.ownership import (
    APPLY,
    UPDATE,
    Manager,
    Ownership,
    read_ownership,
    unmanaged,
    with_ownership,
)
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.schemas import Schema
from casaba.simulation.api_server.statuses import ApiError, bad_request
from casaba.simulation.api_server.typed_values import (
    NotTyped,
    check,
    field_set,
    merged,
    without,
)

BEFORE_FIRST_APPLY = "before-first-apply"
"""Owner of everything in an object that nobody tracked until somebody applied."""

Conflict = tuple[Manager, Path]


def applied(
    info: ResourceInfo,
    current: Object | None,
    body: bytes,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
    field_validation: str = "",
) -> Object:
    """The object after a manager applied a configuration, YAML or JSON.

    Raises ApiError 400 for a body that can't be applied, 409 with a cause for each conflict, and
    500 for fields that the kind lacks, as the real server does.
    """
    wanted = _configuration(info, body, field_validation)
    schema = schemas.of(info)
    _check_typed(info, schema, wanted)
    live = schemas.zero_object(schema) if current is None else unmanaged(current)
    who = Manager(
        name=manager, operation=APPLY, api_version=info.api_version, subresource=subresource
    )
    known = _known(info, current, subresource, now)
    new, ownership = _merged(info, schema, live, wanted, known, who)
    changes = changed_fields(info, current, new, subresource)
    if not force:
        allowed = allowed_conflicts(schema, live, manager)
        _check_conflicts(ownership, who, (changes.added | changes.modified) - allowed)
    ownership = ownership.without(changes.added | changes.modified | changes.removed, but=who)
    document = set_defaults(info, _decoded(info, schema, new), now)
    document = with_last_applied(document, wanted, manager)
    time = now if document != live else ""
    ownership = ownership.owning(who, stripped(ownership.of(who)), time)
    return settled(with_ownership(document, ownership), current)


def _configuration(info: ResourceInfo, body: bytes, field_validation: str) -> Object:
    try:
        value, problems = bodies.parsed(body, "application/yaml")
    except bodies.Unreadable as error:
        told = f"error converting YAML to JSON: {error}"
        raise bad_request(f"error decoding YAML: {told}") from error
    if not isinstance(value, dict):
        raise bad_request("error decoding YAML: the body must be an object")
    problems = (*problems, *repeated_fields(value))
    if problems and field_validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {', '.join(problems)}")
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if (api_version, kind) != (info.api_version, info.kind):
        place = api_version if "/" in str(api_version) else f"/{api_version}"
        raise bad_request(f"invalid object type: {place}, Kind={kind}")
    if (value.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return value


def _check_typed(info: ResourceInfo, schema: Schema, wanted: Object) -> None:
    try:
        check(schema, wanted)
    except NotTyped as error:
        raise ApiError(
            500,
            "",
            f"failed to create typed patch object ({_place(wanted)}; {_group_version(info)}, "
            f"Kind={info.kind}): {error}",
        ) from error


def _place(document: Object) -> str:
    metadata = document.get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _group_version(info: ResourceInfo) -> str:
    return f"{info.group}/{info.version}"


def _known(info: ResourceInfo, current: Object | None, subresource: str, now: str) -> Ownership:
    ownership = Ownership() if current is None else read_ownership(current)
    if current is None or ownership.entries:
        return ownership
    everything = changed_fields(info, None, unmanaged(current), subresource)
    before = Manager(
        name=BEFORE_FIRST_APPLY,
        operation=UPDATE,
        api_version=info.api_version,
        subresource=subresource,
    )
    return booked(ownership, before, everything, now)


def _merged(
    info: ResourceInfo,
    schema: Schema,
    live: Object,
    wanted: Object,
    known: Ownership,
    who: Manager,
) -> tuple[Object, Ownership]:
    """The merged object without what the manager gave up, and the ownership it claims."""
    closed = closed_fields(info, who.subresource)
    claimed = frozenset(path for path in field_set(schema, wanted) if not is_under(path, closed))
    before = known.of(who)
    ownership = known.owning(who, claimed)
    new = merged(schema, live, wanted)
    return _pruned(schema, new, before, ownership), ownership


def _pruned(schema: Schema, new: Any, before: FieldSet, ownership: Ownership) -> Any:
    """Without the fields that the manager owned, gave up, and nobody else owns."""
    if not before:
        return new
    before = _with_parents(schema, before)
    everything = _with_parents(schema, field_set(schema, new))
    owned = _with_parents(
        schema, frozenset().union(*(entry.fields for entry in ownership.entries.values()))
    )
    rest = _with_parents(schema, field_set(schema, without(schema, new, before)))
    kept = without(schema, new, everything - rest - owned)
    gone = everything - _with_parents(schema, field_set(schema, kept))
    return without(schema, new, gone & before)


def _with_parents(schema: Schema, fields: FieldSet) -> FieldSet:
    """The set and the declared fields of objects that its paths lead through."""
    found = set(fields)
    for path in fields:
        place: Schema | None = schema
        for depth, step in enumerate(path[:-1]):
            if place is None:
                break
            declared = step[0] == "f" and step[1] in place.properties
            if declared:
                found.add(path[: depth + 1])
            place = place.properties[step[1]] if declared else place.items
    return frozenset(found)


def _check_conflicts(ownership: Ownership, who: Manager, changed: FieldSet) -> None:
    """Raises ApiError 409 if something changes that others own."""
    conflicts = [
        (entry.manager, path)
        for key, entry in sorted(ownership.entries.items())
        if key != who.key
        for path in in_order(entry.fields & changed)
    ]
    if conflicts:
        raise _conflict_error(conflicts)


def _conflict_error(conflicts: list[Conflict]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown(manager)}",
            "field": shown(path),
        }
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        told = f"1 conflict: conflict with {_shown(manager)}: {shown(path)}"
    else:
        told = f"{len(conflicts)} conflicts: " + "\n".join(_by_manager(conflicts))
    return ApiError(409, "Conflict", f"Apply failed with {told}", details={"causes": causes})


def _by_manager(conflicts: list[Conflict]) -> list[str]:
    lines = []
    for manager in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {_shown(manager)}:")
        lines += [f"- {shown(path)}" for other, path in conflicts if other == manager]
    return lines


def _shown(manager: Manager) -> str:
    told = f'"{manager.name}"'
    if manager.subresource:
        told += f' with subresource "{manager.subresource}"'
    return f"{told} using {manager.api_version}" if manager.operation == UPDATE else told


def _decoded(info: ResourceInfo, schema: Schema, new: Object) -> Object:
    """The merged object as the server would read it; what is null was given up."""
    try:
        value = Checked(schema, new).value
    except WrongType as error:
        raise ApiError(
            500,
            "",
            f"failed to convert new object ({_place(new)}; {_group_version(info)}, "
            f"Kind={info.kind}) to proper version: unable to convert unstructured object to "
            f"{_group_version(info)}, Kind={info.kind}: {error}",
        ) from error
    return {"kind": info.kind, "apiVersion": info.api_version, **value}
