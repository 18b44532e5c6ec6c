"""Small clusters on which the claims of converted pods are allocated as kube-scheduler would."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import msgspec

from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid, NodeName
from casaba.model.quantity import parse
from casaba.policy.allocation import Allocated, Allocator, CandidateNode, Refused
from casaba.policy.convert import Card, ClusterFacts, Conversion
from casaba.policy.slices import slice_spec
from casaba.settings.host_paths import DRIVER_NAME
from casaba.simulation.api_server.requests import Object
from casaba.wire.kubernetes import (
    AllocationResult,
    CelSelector,
    Device,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from tests.unit.policy.convert.pods import uses
from tests.unit.values import A10, MIB

CLASS = DeviceClass(
    metadata=ObjectMeta(name=DRIVER_NAME),
    spec=DeviceClassSpec(
        selectors=(
            DeviceSelector(
                cel=CelSelector(
                    expression=(
                        f'device.driver == "{DRIVER_NAME}" && '
                        f'device.attributes["{DRIVER_NAME}"].type == "hami-gpu"'
                    )
                )
            ),
        )
    ),
)


def gpus(*mib: int, product: str = "NVIDIA A10", roots: Sequence[str] = ()) -> tuple[Gpu, ...]:
    """Cards of one node, each below its own PCIe root unless told."""
    return tuple(
        replace(
            A10,
            minor=index,
            memory_bytes=size * MIB,
            product_name=product,
            uuid=GpuUuid(f"GPU-{uuid.UUID(int=index)}"),
            pcie_root=roots[index] if roots else f"pci0000:{index:02x}",
        )
        for index, size in enumerate(mib)
    )


class Cluster:
    """Nodes with cards; claims that were allocated stay."""

    def __init__(self, **nodes: tuple[Gpu, ...]) -> None:
        self._nodes = nodes
        self.slices = [_slice(node, cards) for node, cards in nodes.items()]
        self._allocated: list[ResourceClaim] = []
        self._numbers = count()

    @property
    def facts(self) -> ClusterFacts:
        """What its slices show."""
        return ClusterFacts(
            cards=tuple(
                Card(
                    memory_bytes=gpu.memory_bytes,
                    product_name=gpu.product_name,
                    uuid=gpu.uuid,
                    node=node,
                )
                for node, cards in self._nodes.items()
                for gpu in cards
            )
        )

    def with_device(self, slice_: ResourceSlice) -> None:
        """One more slice, whatever it holds."""
        self.slices.append(slice_)

    def place(self, conversion: Conversion, node: str) -> AllocationResult | Refused:
        """Allocate the pod's claim on a node."""
        (template,) = conversion.templates
        claim = ResourceClaim(
            metadata=ObjectMeta(namespace="default", name=f"claim-{next(self._numbers)}"),
            spec=msgspec.convert(template.spec["spec"], ResourceClaimSpec),
        )
        outcome = self._allocator().allocate(CandidateNode(name=node), [claim])
        if not isinstance(outcome, Allocated):
            return outcome
        (result,) = outcome.results
        status = ResourceClaimStatus(allocation=result)
        self._allocated.append(msgspec.structs.replace(claim, status=status))
        return result

    def _allocator(self) -> Allocator:
        return Allocator(
            slices=self.slices,
            classes={DRIVER_NAME: CLASS},
            allocated=self._allocated,
            new_share_id=lambda: str(uuid.UUID(int=next(self._numbers))),
        )


def _slice(node: str, cards: Iterable[Gpu]) -> ResourceSlice:
    spec = msgspec.convert(slice_spec(NodeName(node), cards, 1), ResourceSliceSpec)
    return ResourceSlice(metadata=ObjectMeta(name=node), spec=spec)


def odd_slice(node: str, device: Object) -> ResourceSlice:
    """A slice of our driver with one device as told."""
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{node}-odd"),
        spec=ResourceSliceSpec(
            driver=DRIVER_NAME,
            pool=ResourcePool(name=node, generation=1, resource_slice_count=1),
            node_name=node,
            devices=(msgspec.convert(device, Device),),
        ),
    )


def shares(changed: Object, result: AllocationResult) -> Mapping[str, list[tuple[str, int, int]]]:
    """For each container (device, MiB, cores) of each of its requests."""
    given = {
        one.request.split("/")[0]: (
            one.device,
            parse(one.consumed_capacity["memory"]) // MIB,
            int(one.consumed_capacity["cores"]),
        )
        for one in result.devices.results
    }
    return {
        container: [given[name] for name in names.split()]
        for container, names in uses(changed).items()
    }
