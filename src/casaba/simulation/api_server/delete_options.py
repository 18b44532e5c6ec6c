"""What a deletion asks for: its body and query parameters (meta/v1, DeleteOptions). Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from casaba.simulation.api_server import bodies
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import FieldError, bad_request, invalid

_DELETE_OPTIONS = ResourceInfo(
    group="meta.k8s.io", plural="deleteoptions", kind="DeleteOptions", namespaced=False
)
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, kw_only=True)
class DeleteOptions:
    """How to delete, and what the object must still be."""

    grace_period_s: int | None = None
    propagation: str = ""
    """Foreground, Background, Orphan, or empty for the kind's default."""
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _Body(msgspec.Struct, rename="camel"):
    kind: str = ""
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


def delete_options(request: ResourceRequest) -> DeleteOptions:
    """The options of a delete request; raises ApiError 400 and 422. A body goes before a query."""
    body = _from_body(request) if request.body else _from_query(request.query)
    return _options(body, request.dry_run)


def options_within(content: Any, *, dry_run: bool) -> DeleteOptions:
    """The options that another object holds; raises ApiError 400 and 422."""
    return _options(_read(content), dry_run)


def _options(body: _Body, dry_run: bool) -> DeleteOptions:
    if errors := tuple(_errors(body)):
        raise invalid(_DELETE_OPTIONS, "", errors)
    named = body.preconditions or _Preconditions()
    return DeleteOptions(
        grace_period_s=body.grace_period_seconds,
        propagation=body.propagation_policy or _from_orphan(body.orphan_dependents),
        uid=named.uid,
        resource_version=named.resource_version,
        dry_run=dry_run or bool(body.dry_run),
    )


def _from_body(request: ResourceRequest) -> _Body:
    try:
        content, _ = bodies.parsed(request.body, request.content_type)
    except bodies.Unreadable as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    body = _read(content)
    if body.kind not in ("", _DELETE_OPTIONS.kind):
        raise bad_request(f'no kind "{body.kind}" is registered for version "meta.k8s.io/v1"')
    return body


def _read(content: Any) -> _Body:
    try:
        return msgspec.convert(content, type=_Body)
    except msgspec.ValidationError as error:
        raise bad_request(f"the DeleteOptions in the body can't be read: {error}") from None


def _from_query(query: Mapping[str, str]) -> _Body:
    try:
        grace = int(query["gracePeriodSeconds"]) if query.get("gracePeriodSeconds") else None
    except ValueError:
        text = query["gracePeriodSeconds"]
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    orphan = query.get("orphanDependents")
    return _Body(
        grace_period_seconds=grace,
        propagation_policy=query.get("propagationPolicy"),
        orphan_dependents=None if orphan is None else orphan.lower() not in ("false", "0"),
    )


def _from_orphan(orphan_dependents: bool | None) -> str:
    if orphan_dependents is None:
        return ""
    return "Orphan" if orphan_dependents else "Background"


def _errors(body: _Body) -> Iterator[FieldError]:
    policy, field = body.propagation_policy, "propagationPolicy"
    if policy and body.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        yield FieldError(field=field, message=f'Invalid value: "{policy}": {why}')
    elif policy and policy not in _POLICIES:
        supported = ", ".join(f'"{known}"' for known in (*_POLICIES, "nil"))
        message = f'Unsupported value: "{policy}": supported values: {supported}'
        yield FieldError(field=field, message=message, reason="FieldValueNotSupported")
    yield from dry_run_errors(body.dry_run)


def dry_run_errors(asked: Any) -> Iterator[FieldError]:
    """Anything but All is wrong."""
    if asked and asked != ["All"]:
        text = ", ".join(f'"{word}"' for word in asked)
        message = f'Unsupported value: [{text}]: supported values: "All"'
        yield FieldError(field="dryRun", message=message, reason="FieldValueNotSupported")
