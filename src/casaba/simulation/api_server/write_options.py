"""What writes are asked beside their objects, checked: query parameters and content types. Pure.

Source: meta/v1, CreateOptions, UpdateOptions and PatchOptions.
"""

from collections.abc import Iterator

from casaba.simulation.api_server.delete_options import dry_run_errors
from casaba.simulation.api_server.list_options import flag
from casaba.simulation.api_server.protobuf_bodies import PROTOBUF
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, FieldError, invalid

APPLY_TYPES = ("application/apply-patch+yaml", "application/apply-patch+json")
MANAGER_CHARACTERS = 128
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    *APPLY_TYPES,
)
_BODY_TYPES = ("", "application/json", "application/yaml")
_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_FIELD_VALIDATIONS = ("", "Ignore", "Warn", "Strict")


def check_write_options(request: ResourceRequest) -> None:
    """Raises ApiError 422 for parameters that make no sense."""
    if errors := tuple(_errors(request)):
        kind = _KINDS[request.verb]
        options = ResourceInfo(
            group="meta.k8s.io", plural=kind.lower(), kind=kind, namespaced=False
        )
        raise invalid(options, "", errors)


def check_content_type(request: ResourceRequest) -> None:
    """Raises ApiError 415 for a body in a form that the server can't read."""
    if request.verb == "patch":
        if request.content_type not in _PATCH_TYPES:
            message = "415: Unsupported Media Type"
            raise ApiError(415, "UnsupportedMediaType", message, details={})
    elif request.body and request.content_type not in _BODY_TYPES:
        accepted = ", ".join([*filter(None, _BODY_TYPES), PROTOBUF])
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            f"{accepted}",
        )


def is_apply(request: ResourceRequest) -> bool:
    """Whether a patch is a server-side apply."""
    return request.verb == "patch" and request.content_type in APPLY_TYPES


def _errors(request: ResourceRequest) -> Iterator[FieldError]:
    query = request.query
    if request.verb == "patch":
        yield from _patch_errors(request)
    manager = query.get("fieldManager", "")
    if len(manager) > MANAGER_CHARACTERS:
        message = f"Too long: may not be more than {MANAGER_CHARACTERS} bytes"
        yield FieldError(field="fieldManager", message=message, reason="FieldValueTooLong")
    if "dryRun" in query:
        yield from dry_run_errors([query["dryRun"]])
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATIONS:
        supported = ", ".join(f'"{known}"' for known in ("", "Ignore", "Strict", "Warn"))
        message = f'Unsupported value: "{validation}": supported values: {supported}'
        yield FieldError(field="fieldValidation", message=message, reason="FieldValueNotSupported")


def _patch_errors(request: ResourceRequest) -> Iterator[FieldError]:
    if is_apply(request):
        if not request.query.get("fieldManager"):
            message = "Required value: is required for apply patch"
            yield FieldError(field="fieldManager", message=message, reason="FieldValueRequired")
    elif flag(request.query, "force") is not None:
        message = "Forbidden: may not be specified for non-apply patch"
        yield FieldError(field="force", message=message, reason="FieldValueForbidden")
