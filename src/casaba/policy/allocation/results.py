"""A solution written as the scheduler writes it into the claims' status."""

from collections.abc import Callable, Iterable

from casaba.policy.allocation.behaviour import Behaviour
from casaba.policy.allocation.candidacy import Taken
from casaba.policy.allocation.nodes import NODE_NAME_FIELD, CandidateNode
from casaba.policy.allocation.requests import Wanted
from casaba.policy.allocation.selectors import Selectors
from casaba.wire.kubernetes import (
    AllocationResult,
    DeviceAllocationConfig,
    DeviceAllocationResult,
    DeviceClaimConfig,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceClaim,
)

NewShareId = Callable[[], str]


def allocation_result(
    claim: ResourceClaim,
    taken: Iterable[Taken],
    chosen: tuple[Wanted, ...],
    node: CandidateNode,
    *,
    selectors: Selectors,
    behaviour: Behaviour,
    new_share_id: NewShareId,
) -> AllocationResult:
    """The result for one claim: its devices, and for each request the chosen alternative."""
    taken = tuple(taken)
    config = (
        *_class_config(chosen, selectors, behaviour),
        *_claim_config(claim.spec.devices.config, chosen),
    )
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_device_result(one, new_share_id) for one in taken), config=config
        ),
        node_selector=_node_selector(taken, node),
    )


def _device_result(taken: Taken, new_share_id: NewShareId) -> DeviceRequestAllocationResult:
    device, amounts = taken.candidate.device, taken.amounts
    return DeviceRequestAllocationResult(
        request=taken.wanted.name,
        driver=taken.candidate.id.driver,
        pool=taken.candidate.id.pool,
        device=taken.candidate.id.device,
        share_id=None if amounts is None else new_share_id(),
        consumed_capacity={name: str(amount) for name, amount in (amounts or {}).items()},
        admin_access=True if taken.wanted.admin else None,
        tolerations=taken.wanted.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
    )


def _class_config(
    chosen: tuple[Wanted, ...], selectors: Selectors, behaviour: Behaviour
) -> Iterable[DeviceAllocationConfig]:
    """Each class's entries once, for all requests that got the class."""
    requests: dict[str, list[str]] = {}
    for wanted in chosen:
        requests.setdefault(wanted.class_name, []).append(wanted.name)
    for wanted in {wanted.class_name: wanted for wanted in reversed(chosen)}.values():
        names = tuple(requests[wanted.class_name])
        general = behaviour.clears_requests_of_general_config and len(names) == len(chosen)
        for config in selectors.class_of(wanted).spec.config:
            yield DeviceAllocationConfig(
                source="FromClass", requests=() if general else names, opaque=config.opaque
            )


def _claim_config(
    configs: Iterable[DeviceClaimConfig], chosen: tuple[Wanted, ...]
) -> Iterable[DeviceAllocationConfig]:
    """An entry is repeated for each request that it names, as the scheduler does."""
    for config in configs:
        times = sum(wanted.is_of(config.requests) for wanted in chosen) if config.requests else 1
        for _ in range(times):
            yield DeviceAllocationConfig(
                source="FromClaim", requests=config.requests, opaque=config.opaque
            )


def _node_selector(taken: tuple[Taken, ...], node: CandidateNode) -> NodeSelector | None:
    """None if the devices can be used everywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for one in taken:
        device = one.candidate.device
        by_device = one.candidate.slice.spec.per_device_node_selection
        place = device if by_device else one.candidate.slice.spec
        if place.node_name is not None or device.binds_to_node:
            return _only(node)
        if place.node_selector is not None and place.node_selector.node_selector_terms:
            term = place.node_selector.node_selector_terms[0]
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _only(node: CandidateNode) -> NodeSelector:
    is_node = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node.name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(is_node,)),))


def _add_new(more: Iterable[NodeSelectorRequirement], known: list[NodeSelectorRequirement]) -> None:
    for requirement in more:
        if not any(_same(requirement, other) for other in known):
            known.append(requirement)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    """The order of the values does not matter."""
    return (one.key, one.operator, set(one.values)) == (
        other.key,
        other.operator,
        set(other.values),
    )
