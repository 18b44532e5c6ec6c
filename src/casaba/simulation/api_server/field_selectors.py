"""Field selectors as the real server reads them, and the fields that each kind offers.

Sources: apimachinery, package `fields`; the kinds' field label conversions in kube-apiserver.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, bad_request

_METADATA = ("metadata.name", "metadata.namespace")
# What old clients still send.
_OLD_NAMES = {("pods", "spec.host"): "spec.nodeName"}


@dataclass(frozen=True, kw_only=True)
class FieldTerm:
    """One condition on one field of an object."""

    field: str
    value: str
    equal: bool

    def matches(self, object_: Object) -> bool:
        """Whether an object meets it; what an object lacks is the empty string."""
        return (read_field(object_, self.field) == self.value) == self.equal


def parsed_field_selector(info: ResourceInfo, text: str) -> Callable[[Object], bool]:
    """The test that a `fieldSelector` parameter asks for.

    Raises ApiError 400 for what is not a selector, or a field that the kind does not offer.
    """
    terms = field_terms(info, text)
    return lambda object_: all(term.matches(object_) for term in terms)


def field_terms(info: ResourceInfo, text: str) -> tuple[FieldTerm, ...]:
    """The conditions of a field selector, sorted as the real parser does. Raises ApiError 400."""
    # The whole text is parsed before the first name is looked up.
    terms = [_term(text, part) for part in sorted(_split(text)) if part]
    return tuple(
        FieldTerm(field=known_field(info, term.field), value=term.value, equal=term.equal)
        for term in terms
        if term.field or term.value
    )


def required_name(terms: tuple[FieldTerm, ...]) -> str | None:
    """The name that a selector asks for by `metadata.name=…`, if it does."""
    for term in terms:
        if term.field == "metadata.name" and term.equal:
            return term.value
    return None


def _split(text: str) -> list[str]:
    """The terms between commas; a backslash makes a comma part of the value."""
    return re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)


def _term(selector: str, part: str) -> FieldTerm:
    found = re.search(r"!=|==|=", part)
    if found is None:
        raise bad_request(f"invalid selector: '{selector}'; can't understand '{part}'")
    value = _unescaped(part[found.end() :])
    return FieldTerm(field=part[: found.start()], value=value, equal=found[0] != "!=")


def _unescaped(text: str) -> str:
    """A value without its backslashes, which may stand before `\\`, `,` and `=` only."""
    plain = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in ("\\", ",", "="):
                raise _bad_escape(f"invalid escape sequence: \\{following}")
            character = following
        elif character in ",=":
            raise _bad_escape(f"unescaped character in value: {ord(character)}")
        plain.append(character)
    return "".join(plain)


def _bad_escape(why: str) -> ApiError:
    return bad_request(f"invalid field selector: {why}")


def known_field(info: ResourceInfo, field: str) -> str:
    """The field's present name. Raises ApiError 400 if the kind cannot be selected by it."""
    field = _OLD_NAMES.get((info.plural, field), field)
    if field in info.selectable or field in _own_metadata(info):
        return field
    raise _unknown(info, field)


def _own_metadata(info: ResourceInfo) -> tuple[str, ...]:
    """Kinds with fields of their own and no namespace refuse `metadata.namespace`."""
    if info.selectable and not info.namespaced:
        return _METADATA[:1]
    return _METADATA


def _unknown(info: ResourceInfo, field: str) -> ApiError:
    if not info.selectable:
        return bad_request(
            f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if info.kind == "ResourceSlice":
        kind = f"{info.api_version}, Kind={info.kind}"
        return bad_request(f"field label not supported for {kind}: {field}")
    return bad_request(f"field label not supported: {field}")


def read_field(object_: Object, field: str) -> str:
    """A field as text, "" where the object has none."""
    if (special := _SPECIAL.get(field)) is not None:
        return special(object_)
    return _text(_at(object_, *field.split(".")))


def _at(object_: Any, *path: str) -> Any:
    for key in path:
        object_ = object_.get(key) if isinstance(object_, dict) else None
    return object_


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _pod_ip(pod: Object) -> str:
    ips = _at(pod, "status", "podIPs") or [{"ip": _at(pod, "status", "podIP")}]
    return _text(ips[0].get("ip"))


def _event_source(event: Object) -> str:
    return _text(_at(event, "source", "component") or event.get("reportingComponent"))


_SPECIAL: dict[str, Callable[[Object], str]] = {
    "spec.hostNetwork": lambda object_: _text(bool(_at(object_, "spec", "hostNetwork"))),
    "spec.unschedulable": lambda object_: _text(bool(_at(object_, "spec", "unschedulable"))),
    "status.podIP": _pod_ip,
    # The real server takes the field, but never fills it.
    "status.podIPs": lambda pod: "",
    "source": _event_source,
}
