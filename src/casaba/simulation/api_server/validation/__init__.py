"""Whether an object may be stored: the rules of its kind, in the real server's words."""

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import FieldError
from casaba.simulation.api_server.validation.kinds import kind_errors, status_errors
from casaba.simulation.api_server.validation.metadata import creation_errors, update_errors

__all__ = ["validated"]

_CHECKS_NO_METADATA = frozenset({"Event"})


def validated(
    info: ResourceInfo, new: Object, old: Object | None, subresource: str
) -> tuple[FieldError, ...]:
    """All that is wrong with an object before it is created (no `old`) or changed."""
    errors: list[FieldError] = []
    if info.kind not in _CHECKS_NO_METADATA:
        if old is None:
            errors += creation_errors(info, new["metadata"])
        else:
            errors += update_errors(new["metadata"], old["metadata"])
    if subresource == "":
        errors += kind_errors(info, new, old)
    elif subresource == "status" and old is not None:
        errors += status_errors(info, new, old)
    return tuple(errors)
