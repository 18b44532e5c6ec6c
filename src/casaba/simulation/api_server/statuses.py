"""Refusals in the API server's own words (apimachinery, api/errors): what kubectl's users know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo


@dataclass(frozen=True, kw_only=True)
class FieldError:
    """One field that is wrong; `reason` is a cause such as FieldValueInvalid."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class ApiError(Exception):
    """A request that is refused; `status` is the Status object that the client gets."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Object | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s
        self.warnings: tuple[str, ...] = ()
        if retry_after_s is not None:
            details = {**(details or {}), "retryAfterSeconds": retry_after_s}
        self.status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({} if details is None else {"details": details}),
            "code": code,
        }


def _named(info: ResourceInfo, name: str) -> Object:
    details: Object = {"name": name, "group": info.group, "kind": info.plural}
    return {key: value for key, value in details.items() if value}


def joined(errors: Iterable[str]) -> str:
    """Errors as one, as Go's aggregates are printed: each once, in brackets if there are more."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def not_found(info: ResourceInfo, name: str) -> ApiError:
    """404 of an object."""
    return ApiError(
        404, "NotFound", f'{info.qualified} "{name}" not found', details=_named(info, name)
    )


def no_such_path() -> ApiError:
    """404 of a path that the server does not serve."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def not_simulated(what: str) -> ApiError:
    """501 of what a real server serves and this one never will."""
    return ApiError(
        501,
        "",
        f"{what} is not part of the simulated cluster; its containers are processes of this "
        "machine: use the machine's own tools on them",
    )


def method_not_allowed() -> ApiError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def already_exists(info: ResourceInfo, name: str) -> ApiError:
    """409 of a create."""
    message = f'{info.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_named(info, name))


def conflict(info: ResourceInfo, name: str, why: str) -> ApiError:
    """409 of an update; `why` is the sentence after the colon."""
    message = f'Operation cannot be fulfilled on {info.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_named(info, name))


def invalid(info: ResourceInfo, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with a cause for each field."""
    text = joined([f"{error.field}: {error.message}" for error in errors])
    subject = f"{info.kind}.{info.group}" if info.group else info.kind
    causes = [
        {"reason": error.reason, "message": error.message, "field": error.field} for error in errors
    ]
    details: Object = {**_named(info, name), "kind": info.kind, "causes": causes}
    return ApiError(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def forbidden(info: ResourceInfo, name: str, why: str) -> ApiError:
    """403; `why` is the sentence after the colon."""
    message = f'{info.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_named(info, name))


def expired(message: str) -> ApiError:
    """410: the version asked for was compacted."""
    return ApiError(410, "Expired", message)
