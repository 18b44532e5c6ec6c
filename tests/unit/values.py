"""Strategies and examples of casaba's values."""

import uuid

from hypothesis import strategies as st

from casaba.model.claim import AllocatedClaim, Share
from casaba.model.gpu import Gpu
from casaba.model.ids import ClaimUid, DeviceName, GpuUuid, NodeName, RequestName
from casaba.model.limits import CardLimits, Policy

MIB = 1 << 20
GIB = 1 << 30
NODE = NodeName("edge-gpu-a10")
CLAIM_UID = ClaimUid("11111111-2222-3333-4444-555555555555")

A10 = Gpu(
    uuid=GpuUuid("GPU-13e066b9-098c-8932-9d26-ea75a943d6ba"),
    minor=0,
    product_name="NVIDIA A10",
    brand="Nvidia",
    architecture="Ampere",
    compute_capability="8.6.0",
    driver_version="580.126.9",
    cuda_driver_version="13.0.0",
    pci_bus_id="0000:00:03.0",
    pcie_root="pci0000:00",
    memory_bytes=23028 * MIB,
)

words = st.integers(min_value=0, max_value=2**64 - 1)
half_words = st.integers(min_value=0, max_value=2**32 - 1)


def card_limits() -> st.SearchStrategy[CardLimits]:
    return st.builds(
        CardLimits,
        gpu=st.uuids().map(lambda value: GpuUuid(f"GPU-{value}")),
        memory_bytes=words,
        context_allowance_bytes=words,
        context_size_bytes=words,
        cores_percent=half_words,
        weight=half_words,
    )


def policies() -> st.SearchStrategy[Policy]:
    return st.builds(
        Policy,
        cards=st.lists(card_limits(), max_size=16).map(tuple),
        announce=st.booleans(),
        generation=words,
    )


def shares(devices: int = 2) -> st.SearchStrategy[Share]:
    return st.builds(
        Share,
        request=st.sampled_from(["gpu", "main", "other"]).map(RequestName),
        pool=st.just(NODE),
        device=st.integers(0, devices - 1).map(lambda n: DeviceName(f"hami-gpu-{n}")),
        share_id=st.uuids().map(str) | st.none(),
        memory_bytes=st.integers(0, 24 * GIB),
        cores_percent=st.integers(0, 100),
    )


def claims(devices: int = 2) -> st.SearchStrategy[AllocatedClaim]:
    return st.builds(
        AllocatedClaim,
        namespace=st.just("default"),
        name=st.just("claim"),
        uid=st.uuids().map(lambda value: ClaimUid(str(value))),
        shares=st.lists(shares(devices), min_size=1, max_size=4).map(tuple),
    )


def one_claim(*parts: Share, uid: str = CLAIM_UID) -> AllocatedClaim:
    """A claim of the default namespace with these shares."""
    return AllocatedClaim(namespace="default", name="claim", uid=ClaimUid(uid), shares=parts)


def one_share(
    memory: int = 10 * GIB, cores: int = 50, *, request: str = "gpu", device: int = 0
) -> Share:
    """A share of a card of the node."""
    return Share(
        request=RequestName(request),
        pool=NODE,
        device=DeviceName(f"hami-gpu-{device}"),
        share_id=str(uuid.UUID(int=7)),
        memory_bytes=memory,
        cores_percent=cores,
    )
