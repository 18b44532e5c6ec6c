"""Conditions on nodes, as slices, allocations and pods state them (k8s.io/api, core/v1)."""

from casaba.wire.kubernetes.meta import Wire


class NodeSelectorRequirement(Wire, frozen=True):
    """One condition on a label or a field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """Conditions that must all hold; without any, the term selects nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()
