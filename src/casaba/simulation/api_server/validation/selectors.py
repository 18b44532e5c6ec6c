"""Rules for label selectors and node selectors (meta/v1 and core/v1)."""

from collections.abc import Iterable

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    forbidden,
    invalid,
    required,
)
from casaba.simulation.api_server.validation.metadata import label_errors

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_WITH_NUMBER = ("Gt", "Lt")


def label_selector_errors(path: str, selector: Object) -> Errors:
    """matchLabels and matchExpressions."""
    yield from label_errors(f"{path}.matchLabels", selector.get("matchLabels", {}))
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        yield from _requirement_errors(f"{path}.matchExpressions[{index}]", requirement, ())


def node_selector_errors(path: str, selector: Object) -> Errors:
    """At least one term, each of sound requirements."""
    terms = selector.get("nodeSelectorTerms", ())
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from node_selector_term_errors(f"{path}.nodeSelectorTerms[{index}]", term)


def node_selector_term_errors(path: str, term: Object) -> Errors:
    """matchExpressions over labels and matchFields over the name."""
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        place = f"{path}.matchExpressions[{index}]"
        yield from _requirement_errors(place, requirement, _WITH_NUMBER)
    for index, requirement in enumerate(term.get("matchFields", ())):
        yield from _field_requirement_errors(f"{path}.matchFields[{index}]", requirement)


def _requirement_errors(path: str, requirement: Object, more: Iterable[str]) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator in _WITH_VALUES:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", detail)
    elif operator in more:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(f"{path}.values", detail)
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = requirement.get("key", "")
    yield from each(f"{path}.key", names.qualified(key), key)
    for index, value in enumerate(values):
        yield from each(f"{path}.values[{index}]", names.label_value(value), value)


def _field_requirement_errors(path: str, requirement: Object) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in _WITH_VALUES:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    key = requirement.get("key", "")
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from each(f"{path}.values[{index}]", names.subdomain(value), value)
