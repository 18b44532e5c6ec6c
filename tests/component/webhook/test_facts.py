"""The cluster's objects become the facts of a conversion."""

from typing import Any

import msgspec

from casaba.model.ids import NodeName
from casaba.policy.convert import Card
from casaba.policy.slices import slice_spec
from casaba.services.webhook.facts import QuotaLimits, SellingClass, cards_of, limited_by, sold_as
from casaba.wire.kubernetes import ResourceSlice
from tests.unit.values import A10, MIB


def slice_of(node: str, generation: int = 1, **changes: Any) -> ResourceSlice:
    """One card on a node; `changes` replace fields of its device."""
    spec = slice_spec(NodeName(node), (A10,), generation)
    spec["devices"][0] |= changes
    return msgspec.convert(
        {"metadata": {"name": f"{node}-{generation}"}, "spec": spec}, ResourceSlice
    )


def card(node: str) -> Card:
    return Card(memory_bytes=23028 * MIB, product_name="NVIDIA A10", uuid=str(A10.uuid), node=node)


def test_every_card_is_told_with_its_node() -> None:
    assert cards_of([slice_of("a"), slice_of("b")]) == (card("a"), card("b"))


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_of("a", 1), slice_of("a", 2)
    assert cards_of([old, new]) == cards_of([new, old]) == (card("a"),)
    assert len(cards_of([new, new, old])) == 2


def test_a_device_without_memory_is_no_card() -> None:
    assert not cards_of([slice_of("a", capacity={})])
    assert not cards_of([slice_of("a", capacity={"memory": {"value": "much"}})])


def test_a_card_without_attributes_has_no_name() -> None:
    (found,) = cards_of([slice_of("a", attributes={"productName": {"int": 1}})])
    assert (found.product_name, found.uuid) == ("", "")


def test_quotas_limit_what_any_of_them_names() -> None:
    quotas = [
        {"metadata": {"name": "one"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}},
        {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "5"}}},
        {"metadata": {"name": "empty"}, "spec": {}},
    ]
    decoded = msgspec.convert(quotas, list[QuotaLimits])
    assert limited_by(decoded) == {"requests.nvidia.com/gpu", "pods"}


def test_classes_may_stand_for_extended_resources() -> None:
    classes = [
        {"metadata": {"name": "one"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}},
        {"metadata": {"name": "two"}, "spec": {}},
    ]
    assert sold_as(msgspec.convert(classes, list[SellingClass])) == {"nvidia.com/gpu"}
