"""What writes send: objects, patches, options and preconditions as JSON. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from msgspec.json import encode

from casaba.kube.resources import Resource

Body = Mapping[str, Any] | bytes
"""A whole object to write: a dict, or its JSON. Never a decoded Struct, which lacks fields."""

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A JSON merge patch (RFC 7386) if a dict, a JSON Patch (RFC 6902) if a list."""

Propagation = Literal["Foreground", "Background", "Orphan"]
"""What becomes of the objects that an object owns: deleted before it, after it, or left."""


class WriteOptions(TypedDict, total=False):
    """What any write can be told beside the object."""

    dry_run: bool
    """Do everything but the change: default, admit, validate, answer."""

    field_validation: Literal["Strict", "Warn", "Ignore"]
    """What unknown and repeated fields are: an Invalid, a warning (the server's default), fine."""

    field_manager: str
    """Who owns the fields that this write sets; by default the client's name."""


_SUBRESOURCE_KINDS = {
    "binding": ("v1", "Binding"),
    "eviction": ("policy/v1", "Eviction"),
    "token": ("authentication.k8s.io/v1", "TokenRequest"),
}
"""Subresources that are written as another kind than the object they belong to."""


def write_query(
    options: WriteOptions, field_manager: str, *, force: bool | None = None
) -> dict[str, str]:
    """The options as the API spells them; `force` is only for server-side apply."""
    query = {"fieldManager": options.get("field_manager", field_manager)}
    if options.get("dry_run"):
        query["dryRun"] = "All"
    if validation := options.get("field_validation"):
        query["fieldValidation"] = validation
    if force is not None:
        query["force"] = "true" if force else "false"
    return query


@dataclass(frozen=True, slots=True)
class Content:
    """The body of a request, and its media type."""

    body: bytes
    type: str = "application/json"


def object_body(resource: Resource[Any], body: Body, subresource: str | None = None) -> Content:
    """The object's JSON; a dict may leave out apiVersion and kind."""
    if isinstance(body, bytes):
        return Content(body)
    own = (resource.api_version, resource.kind)
    api_version, kind = _SUBRESOURCE_KINDS.get(subresource or "", own)
    return Content(encode({"apiVersion": api_version, "kind": kind} | dict(body)))


def apply_body(content: Content) -> Content:
    """The same object, for server-side apply."""
    return Content(content.body, "application/apply-patch+yaml")


def patch_body(
    patch: Patch, *, strategic: bool = False, uid: str | None, resource_version: str | None
) -> Content:
    """A patch that also sets what must not have changed.

    Setting UID and version to other than the object's makes the server refuse the patch. A JSON
    Patch's own `test` would do that too, but as 422, not to be told from a patch that is wrong.
    """
    metadata = _named(uid, resource_version)
    if isinstance(patch, Mapping):
        form = "strategic-merge-patch" if strategic else "merge-patch"
        guarded = {**patch, "metadata": {**patch.get("metadata", {}), **metadata}}
        return Content(encode(guarded if metadata else patch), f"application/{form}+json")
    if strategic:
        raise ValueError("a strategic merge patch is a dict, this is a list")
    guards = [{"op": "add", "path": f"/metadata/{k}", "value": v} for k, v in metadata.items()]
    return Content(encode([*guards, *patch]), "application/json-patch+json")


def delete_body(
    *,
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: Propagation | None = None,
    grace_period_s: int | None = None,
    dry_run: bool = False,
) -> bytes:
    """DeleteOptions with what the object must still be."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := _named(uid, resource_version):
        options["preconditions"] = preconditions
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if dry_run:
        options["dryRun"] = ["All"]
    return encode(options)


def _named(uid: str | None, resource_version: str | None) -> dict[str, str]:
    asked = {"uid": uid, "resourceVersion": resource_version}
    return {key: value for key, value in asked.items() if value is not None}
