"""Which nodes a device can be used on (core/v1 NodeSelector, as kube-scheduler reads it)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from casaba.policy.allocation.outcome import AllocationFailed
from casaba.wire.kubernetes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

NODE_NAME_FIELD = "metadata.name"


@dataclass(frozen=True, kw_only=True)
class CandidateNode:
    """What the decision needs to know of a node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


def reaches(
    node: CandidateNode, node_name: str | None, all_nodes: bool, selector: NodeSelector | None
) -> bool:
    """Whether a slice or device with these fields can be used on the node."""
    if node_name:
        return node.name == node_name
    return all_nodes or (selector is not None and selects(selector, node))


def selects(selector: NodeSelector, node: CandidateNode) -> bool:
    """Whether one of the terms holds; raises AllocationFailed for an operator nobody knows."""
    return any(_term_holds(term, node) for term in selector.node_selector_terms)


def _term_holds(term: NodeSelectorTerm, node: CandidateNode) -> bool:
    """A term without conditions selects nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NODE_NAME_FIELD: node.name}
    return all(_holds(condition, node.labels) for condition in term.match_expressions) and all(
        _holds(condition, fields) for condition in term.match_fields
    )


def _holds(condition: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    compare = _OPERATORS.get(condition.operator)
    if compare is None:
        known = ", ".join(_OPERATORS)
        raise AllocationFailed(
            f"node selector: operator {condition.operator!r} of {condition.key!r} is unknown, "
            f"use one of {known}"
        )
    return compare(labels.get(condition.key), condition.values)


def _greater(value: str | None, values: tuple[str, ...]) -> bool:
    return _difference(value, values) > 0


def _less(value: str | None, values: tuple[str, ...]) -> bool:
    return _difference(value, values) < 0


def _difference(value: str | None, values: tuple[str, ...]) -> int:
    """0, which is neither more nor less, where one of the two is not a whole number."""
    try:
        return int(value or "") - int(values[0])
    except (ValueError, IndexError):
        return 0


_OPERATORS: dict[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": _greater,
    "Lt": _less,
}
