"""What a write's body wants an object to be, before anybody else has a say. Pure."""

from casaba.simulation.api_server.apply import applied
from casaba.simulation.api_server.object_meta import check_place, check_version
from casaba.simulation.api_server.patches import patched_and_told
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.strategy import decoded
from casaba.simulation.api_server.watch_log import Stored
from casaba.simulation.api_server.write_options import is_apply

Proposal = tuple[Object, tuple[str, ...]]
"""An object, and warnings for the client."""


def new_object(request: ResourceRequest, now: str) -> Proposal:
    """The object that a request brings, for a place where there is none; raises ApiError."""
    if is_apply(request):
        return _applied(request, None, now), ()
    return decoded(request.resource, request.body, request.content_type, _validation(request))


def changed_object(request: ResourceRequest, current: Stored, now: str) -> Proposal:
    """The current object with a patch or a configuration on top; raises ApiError."""
    warnings: tuple[str, ...] = ()
    if is_apply(request):
        new = _applied(request, current.object, now)
    else:
        new, warnings = patched_and_told(
            request.resource,
            current.object,
            request.content_type,
            request.body,
            _validation(request),
        )
    check_version(request.resource, new, current)
    check_place(request, new)
    return new, warnings


def _applied(request: ResourceRequest, current: Object | None, now: str) -> Object:
    return applied(
        request.resource,
        current,
        request.body,
        manager=request.field_manager,
        force=request.query.get("force") == "true",
        subresource=request.subresource,
        now=now,
        field_validation=_validation(request),
    )


def _validation(request: ResourceRequest) -> str:
    return request.query.get("fieldValidation", "")
