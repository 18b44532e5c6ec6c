"""Patches of objects: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from casaba.simulation.api_server import bodies, schemas
from casaba.simulation.api_server.defaults import set_defaults
from casaba.simulation.api_server.field_sets import compact
from casaba.simulation.api_server.field_validation import Checked, WrongType, repeated_fields
from casaba.simulation.api_server.json_patch import CannotPatch, operated
from casaba.simulation.api_server.requests import Object, copied
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, FieldError, bad_request, invalid
from casaba.simulation.api_server.strategic import (
    BadPatch,
    as_go_prints,
    strategically_merged,
)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
OPERATIONS = 10_000
"""A JSON patch may have so many."""

_REJECTED = "the server rejected our request due to an error in our request"
_NO_KIND = ResourceInfo(plural="", kind="", namespaced=False)


def patched(
    info: ResourceInfo,
    current: Object,
    content_type: str,
    body: bytes,
    *,
    field_validation: str = "",
) -> Object:
    """The object after a patch, read by its schema; unknown fields are dropped unless Strict.

    Raises ApiError: 400 for a patch that can't be read, 413 for too many operations, 415 for
    another content type, 422 for one that can't be done or makes no object.
    """
    return patched_and_told(info, current, content_type, body, field_validation)[0]


def patched_and_told(
    info: ResourceInfo, current: Object, content_type: str, body: bytes, field_validation: str
) -> tuple[Object, tuple[str, ...]]:
    """As `patched`, with warnings of unknown and repeated fields."""
    kind = bodies.media_type(content_type)
    function = _BY_TYPE.get(kind)
    if function is None:
        raise _unsupported()
    try:
        patch, _ = bodies.parsed(body)
    except bodies.Unreadable as error:
        raise bad_request(f"error decoding patch: {error}") from error
    new = function(info, current, patch)
    source = patch if kind == STRATEGIC_MERGE_PATCH else new
    object_, problems = _read(info, new, source, as_go=kind == STRATEGIC_MERGE_PATCH)
    repeated = repeated_fields(patch)
    if kind == JSON_PATCH:
        repeated = tuple(f"json patch {told}" for told in repeated)
    problems = (*repeated, *problems)
    if problems and field_validation == "Strict":
        why = f"strict decoding error: {', '.join(problems)}"
        raise _makes_no_object(source, why, as_go=kind == STRATEGIC_MERGE_PATCH)
    return object_, () if field_validation == "Ignore" else problems


def _unsupported() -> ApiError:
    supported = ", ".join((JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH))
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        f"{supported}",
    )


def _read(
    info: ResourceInfo, new: Any, source: Any, *, as_go: bool
) -> tuple[Object, tuple[str, ...]]:
    try:
        checked = Checked(schemas.of(info), new)
    except WrongType as error:
        raise _makes_no_object(source, str(error), as_go=as_go) from error
    kind = checked.value.get("apiVersion", info.api_version), checked.value.get("kind", info.kind)
    if kind != (info.api_version, info.kind):
        why = f"{kind[1]} in version {kind[0]} is no {info.kind} in version {info.api_version}"
        raise _makes_no_object(source, why, as_go=as_go)
    object_ = {"kind": info.kind, "apiVersion": info.api_version, **checked.value}
    return set_defaults(info, object_), tuple(checked.problems)


def _makes_no_object(source: Any, why: str, *, as_go: bool) -> ApiError:
    text = as_go_prints(source) if as_go else compact(source)
    message = f"Invalid value: {json.dumps(text, ensure_ascii=False)}: {why}"
    return invalid(_NO_KIND, "", [FieldError(field="patch", message=message)])


def _json_patched(info: ResourceInfo, current: Object, patch: Any) -> Any:
    if not isinstance(patch, list) or not all(isinstance(step, dict) for step in patch):
        raise bad_request("error decoding patch: a JSON patch must be a list of operations")
    if len(patch) > OPERATIONS:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            "Request entity is too large: The allowed maximum operations in a JSON patch is "
            f"{OPERATIONS}, got {len(patch)}",
        )
    document: Any = copied(current)
    for step in patch:
        try:
            document = operated(document, step)
        except CannotPatch as error:
            # The real server keeps to itself which operation failed, and why.
            raise ApiError(422, "Invalid", _REJECTED) from error
    return document


def _merge_patched(info: ResourceInfo, current: Object, patch: Any) -> Any:
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch must be an object")
    return merge_patched(current, patch)


def merge_patched(target: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def _strategic_patched(info: ResourceInfo, current: Object, patch: Any) -> Any:
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch must be an object")
    try:
        return strategically_merged(schemas.of(info), current, patch)
    except BadPatch as error:
        # The real server's answer is a 500 without a reason, too.
        raise ApiError(500, "", str(error)) from error


_BY_TYPE: Mapping[str, Callable[[ResourceInfo, Object, Any], Any]] = {
    JSON_PATCH: _json_patched,
    MERGE_PATCH: _merge_patched,
    STRATEGIC_MERGE_PATCH: _strategic_patched,
}
