"""What writes send: objects, patches and preconditions as JSON. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.json import encode

from casaba.kube.resources import Resource

Body = Mapping[str, Any] | bytes
"""A whole object to write: a dict, or its JSON. Never a decoded Struct, which lacks fields."""

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A JSON merge patch (RFC 7386) if a dict, a JSON Patch (RFC 6902) if a list."""


def object_body(resource: Resource[Any], body: Body) -> bytes:
    """The object's JSON; a dict may leave out apiVersion and kind."""
    if isinstance(body, bytes):
        return body
    return encode({"apiVersion": resource.api_version, "kind": resource.kind} | dict(body))


def patch_body(patch: Patch, *, uid: str | None, resource_version: str | None) -> tuple[str, bytes]:
    """Content type and JSON of a patch that also sets what must not have changed.

    Setting UID and version to other than the object's makes the server refuse the patch. A JSON
    Patch's own `test` would do that too, but as 422, not to be told from a patch that is wrong.
    """
    metadata = _named(uid, resource_version)
    if isinstance(patch, Mapping):
        guarded = {**patch, "metadata": {**patch.get("metadata", {}), **metadata}}
        return "application/merge-patch+json", encode(guarded if metadata else patch)
    guards = [{"op": "add", "path": f"/metadata/{k}", "value": v} for k, v in metadata.items()]
    return "application/json-patch+json", encode([*guards, *patch])


def delete_body(*, uid: str | None, resource_version: str | None) -> bytes:
    """DeleteOptions with what the object must still be."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := _named(uid, resource_version):
        options["preconditions"] = preconditions
    return encode(options)


def _named(uid: str | None, resource_version: str | None) -> dict[str, str]:
    asked = {"uid": uid, "resourceVersion": resource_version}
    return {key: value for key, value in asked.items() if value is not None}
