"""From a request's body to an object of the expected kind, or the real server's refusal."""

from typing import Any

from casaba.simulation.api_server import bodies, schemas
from casaba.simulation.api_server.defaults import set_defaults
from casaba.simulation.api_server.field_validation import Checked, WrongType
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, bad_request

_SUMMARY_BYTES = 30
"""So much of a body that makes no sense is shown."""


def decoded(
    info: ResourceInfo,
    body: bytes,
    content_type: str,
    field_validation: str,
    *,
    kind: tuple[str, str] | None = None,
) -> tuple[Object, tuple[str, ...]]:
    """The object in a body with its defaults, and warnings.

    `field_validation` is Ignore, Warn or Strict, empty means Warn. `kind` (apiVersion, kind) is for
    subresources that take another kind than the resource's. Raises ApiError 400.
    """
    expected = kind or (info.api_version, info.kind)
    value, problems = _parsed(expected[1], body, content_type)
    _check_kind(expected, value)
    return object_of(info, value, field_validation, kind=kind, problems=problems)


def object_of(
    info: ResourceInfo,
    value: Any,
    field_validation: str,
    *,
    kind: tuple[str, str] | None = None,
    problems: tuple[str, ...] = (),
) -> tuple[Object, tuple[str, ...]]:
    """As `decoded`, from what JSON or YAML held; `problems` are those of the text."""
    api_version, kind_name = kind or (info.api_version, info.kind)
    subject = (value or {}).get("kind") or kind_name
    version = ((value or {}).get("apiVersion") or api_version).rpartition("/")[2]
    try:
        checked = Checked(schemas.of_kind(api_version, kind_name), value or {})
    except WrongType as error:
        raise _cannot_be_handled(subject, version, kind_name, str(error)) from error
    problems = (*problems, *checked.problems)
    if problems and field_validation == "Strict":
        told = "strict decoding error: " + _joined(problems)
        raise _cannot_be_handled(subject, version, kind_name, told)
    object_ = {"kind": kind_name, "apiVersion": api_version, **checked.value}
    warnings = () if field_validation == "Ignore" else problems
    return (object_ if kind else set_defaults(info, object_)), warnings


def _joined(problems: tuple[str, ...]) -> str:
    """As the server lists them; YAML's own come under a headline."""
    lines = [problem for problem in problems if problem.startswith("line ")]
    others = [problem for problem in problems if not problem.startswith("line ")]
    if lines:
        others.insert(0, "yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines))
    return ", ".join(others)


def _parsed(kind: str, body: bytes, content_type: str) -> tuple[Any, tuple[str, ...]]:
    try:
        value, problems = bodies.parsed(body, content_type)
    except bodies.Unreadable as error:
        is_yaml = bodies.media_type(content_type) in bodies.YAML_CONTENT_TYPES
        told = str(error)
        if not is_yaml:
            told = f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized(kind, told, body) from error
    if value is not None and not isinstance(value, dict):
        json_type = "array" if isinstance(value, list) else type(value).__name__
        told = f"json: cannot unmarshal {json_type.replace('str', 'string')} into an object"
        raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {told}", body)
    return value, problems


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})"
    )


def _summary(body: bytes) -> str:
    """The start of a body, in hexadecimal unless it looks like JSON."""
    if not body:
        return "<empty>"
    start = body[:_SUMMARY_BYTES]
    text = start.decode("utf-8", "replace") if body.startswith(b"{") else start.hex()
    return f"{text} ..." if len(body) > _SUMMARY_BYTES else text


def _check_kind(expected: tuple[str, str], value: Any) -> None:
    given_kind = (value or {}).get("kind") or expected[1]
    given_version = (value or {}).get("apiVersion") or expected[0]
    if (given_version, given_kind) == expected:
        return
    if not isinstance(given_kind, str) or not isinstance(given_version, str):
        raise bad_request("couldn't get version/kind; kind and apiVersion must be strings")
    if given_kind == expected[1] and _is_other_version(given_version, expected[0]):
        raise bad_request(
            f"the API version in the data ({given_version}) does not match the expected "
            f"API version ({expected[0]})"
        )
    version = given_version.rpartition("/")[2]
    if _is_known(given_version, given_kind):
        why = (
            f"converting ({version}.{given_kind}) to "
            f"({_internal_package(expected[0])}.{expected[1]}): unknown conversion"
        )
    else:
        why = f'no kind "{given_kind}" is registered for version "{given_version}" in this server'
    raise _cannot_be_handled(given_kind, version, expected[1], why)


def _is_other_version(api_version: str, expected: str) -> bool:
    group, slash, _ = api_version.partition("/")
    return bool(slash) and group == expected.partition("/")[0]


def _is_known(api_version: str, kind: str) -> bool:
    return any((info.api_version, info.kind) == (api_version, kind) for info in RESOURCES)


def _internal_package(api_version: str) -> str:
    return api_version.partition(".")[0].partition("/")[0] if "/" in api_version else "core"


def _cannot_be_handled(kind: str, version: str, expected: str, why: str) -> ApiError:
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {expected}: {why}')
