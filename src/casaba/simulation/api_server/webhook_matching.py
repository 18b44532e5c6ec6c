"""Which webhooks a write concerns: rules, selectors and conditions.

Source: Kubernetes documentation, "Dynamic Admission Control". Webhooks that ask for another
version of a resource are not called: this server has one version of each.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.label_selectors import Requirement
from casaba.simulation.api_server.match_conditions import matched
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import find_resource
from casaba.simulation.api_server.statuses import forbidden, joined, not_found

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_NEVER = frozenset({"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
"""A webhook must not be able to keep itself from being taken away."""


def concerns(hook: Object, attributes: Attributes, objects: Objects) -> bool:
    """Whether a write is this webhook's business, but for its conditions.

    Raises ApiError 404 if the namespace to select by is not there.
    """
    if attributes.request.resource.plural in _NEVER:
        return False
    return (
        any(_rule_matches(rule, attributes) for rule in hook.get("rules") or ())
        and _selects_object(hook.get("objectSelector") or {}, attributes)
        and _selects_namespace(hook.get("namespaceSelector") or {}, attributes, objects)
    )


def meets_conditions(hook: Object, attributes: Attributes, request: Object) -> bool:
    """Whether the conditions hold for the `request` of a review.

    Raises ApiError 403 if that can't be found out and the webhook's failures count.
    """
    conditions = hook.get("matchConditions") or ()
    if not conditions:
        return True
    told = {key: value for key, value in request.items() if key not in ("object", "oldObject")}
    variables = {"object": attributes.object, "oldObject": attributes.old, "request": told}
    result = matched(conditions, variables)
    if result.errors and hook.get("failurePolicy", "Fail") != "Ignore":
        raise forbidden(attributes.request.resource, attributes.name, joined(result.errors))
    return result.matches


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector (meta/v1) selects labels; an empty one selects all."""
    return all(requirement.matches(labels) for requirement in _requirements(selector))


def _requirements(selector: Object) -> Iterator[Requirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield Requirement(key=key, operator="in", values=frozenset({value}))
    for each in selector.get("matchExpressions") or ():
        values = frozenset(each.get("values") or ())
        yield Requirement(key=each["key"], operator=_OPERATORS[each["operator"]], values=values)


def _rule_matches(rule: Object, attributes: Attributes) -> bool:
    info = attributes.request.resource
    return (
        _holds(rule, "apiGroups", info.group)
        and _holds(rule, "apiVersions", info.version)
        and _holds(rule, "operations", attributes.operation)
        and _is_in_scope(rule.get("scope") or "*", attributes)
        and any(_resource_matches(each, attributes) for each in rule.get("resources") or ())
    )


def _holds(rule: Object, field: str, asked: str) -> bool:
    return any(each in ("*", asked) for each in rule.get(field) or ())


def _is_in_scope(scope: str, attributes: Attributes) -> bool:
    if scope == "*":
        return True
    inside = bool(attributes.namespace) and not attributes.is_namespace
    return inside == (scope == "Namespaced")


def _resource_matches(spelt: str, attributes: Attributes) -> bool:
    resource, _, subresource = spelt.partition("/")
    request = attributes.request
    return resource in ("*", request.resource.plural) and subresource in ("*", request.subresource)


def _selects_object(selector: Object, attributes: Attributes) -> bool:
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return True
    states = (each for each in (attributes.object, attributes.old) if each is not None)
    return any(selects(selector, _labels(each)) for each in states)


def _selects_namespace(selector: Object, attributes: Attributes, objects: Objects) -> bool:
    name = attributes.namespace
    if not name or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return True
    if attributes.is_namespace and not attributes.request.subresource and attributes.object:
        return selects(selector, _labels(attributes.object))
    namespace = named(objects, "namespaces", "", name)
    if namespace is None:
        info = find_resource("", "v1", "namespaces")
        assert info is not None
        raise not_found(info, name)
    return selects(selector, _labels(namespace))


def _labels(object_: Object) -> Mapping[str, str]:
    labels: Any = (object_.get("metadata") or {}).get("labels")
    return labels or {}
