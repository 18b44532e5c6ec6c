"""Nodes that a claim can't tell apart: what one of them answers, all of them would."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping

from casaba.wire.kubernetes import Device, DeviceClass, DeviceSelector, ResourceClaim, ResourceSlice

_LOOKS_AT_ALL = re.compile(r"\b(all|exists|exists_one|filter|map|size|transform\w*)\b|[!=]=\s*\{")
"""Expressions that can see an attribute without its name."""


def distinct_nodes(
    slices: Iterable[ResourceSlice], claim: ResourceClaim, classes: Mapping[str, DeviceClass]
) -> Iterator[tuple[str, tuple[ResourceSlice, ...]]]:
    """One node of each sort and its slices, in the order of the nodes' names.

    Two nodes are of one sort if their devices differ only in attributes that neither the claim
    nor its classes name.
    """
    nodes: dict[str, list[ResourceSlice]] = {}
    for slice_ in slices:
        if slice_.spec.node_name:
            nodes.setdefault(slice_.spec.node_name, []).append(slice_)
    sorts: set[Hashable] = set()
    looks = _Looks(_conditions(claim, classes))
    for name in sorted(nodes):
        sort = tuple(
            (slice_.spec.driver, looks.of(device))
            for slice_ in nodes[name]
            for device in slice_.spec.devices
        )
        if sort not in sorts:
            sorts.add(sort)
            yield name, tuple(nodes[name])


def _conditions(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> str:
    devices = claim.spec.devices
    selectors: list[DeviceSelector] = []
    for request in devices.requests or ():
        for form in (request.exactly, *request.first_available):
            if form is not None:
                selectors += form.selectors
                of_class = classes.get(form.device_class_name)
                selectors += of_class.spec.selectors if of_class else ()
    attributes = [
        one.match_attribute or one.distinct_attribute or "" for one in devices.constraints
    ]
    return "\n".join([*(one.cel.expression for one in selectors if one.cel), *attributes])


class _Looks:
    """What conditions can see of a device."""

    def __init__(self, conditions: str) -> None:
        self._conditions = conditions
        self._at_all = _LOOKS_AT_ALL.search(conditions) is not None
        self._seen: dict[str, bool] = {}
        """Of the names of attributes: whether the conditions can see the value."""

    def of(self, device: Device) -> Hashable:
        """Equal for devices that are the same to the conditions."""
        if device.consumes_counters:
            return device.name, id(device)
        attributes = device.attributes
        return (
            tuple(attributes),
            tuple(attributes[name] for name in attributes if self._sees(name)),
            tuple(device.capacity.items()),
            device.allow_multiple_allocations,
            device.taints,
        )

    def _sees(self, name: str) -> bool:
        if name not in self._seen:
            self._seen[name] = self._at_all or name.rpartition("/")[2] in self._conditions
        return self._seen[name]
