"""The published slice is the documents'."""

import dataclasses
import json
from pathlib import Path

import pytest

from casaba.errors import HostError
from casaba.policy.slices import slice_spec
from tests.unit.values import A10, NODE

SCENARIO = Path(__file__).parents[3] / "examples" / "scenario" / "resourceslice.json"


def test_the_scenarios_slice_key_for_key() -> None:
    assert slice_spec(NODE, [A10], 1) == json.loads(SCENARIO.read_text())["spec"]


def test_no_card_is_an_empty_slice() -> None:
    assert "devices" not in slice_spec(NODE, [], 3)  # as the API server stores it


def test_devices_come_by_minor_number_whatever_the_order_found() -> None:
    cards = [dataclasses.replace(A10, minor=minor) for minor in (2, 0, 1)]
    names = [device["name"] for device in slice_spec(NODE, cards, 1)["devices"]]
    assert names == ["hami-gpu-0", "hami-gpu-1", "hami-gpu-2"]


def test_memory_is_offered_in_whole_mib() -> None:
    card = dataclasses.replace(A10, memory_bytes=(100 << 20) + 4096)
    (device,) = slice_spec(NODE, [card], 1)["devices"]
    assert device["capacity"]["memory"]["value"] == "100Mi"


def test_an_unknown_pcie_root_is_left_out() -> None:
    (device,) = slice_spec(NODE, [dataclasses.replace(A10, pcie_root=None)], 1)["devices"]
    assert "resource.kubernetes.io/pcieRoot" not in device["attributes"]


def test_more_cards_than_a_slice_takes() -> None:
    with pytest.raises(HostError, match="129 cards"):
        slice_spec(NODE, [A10] * 129, 1)
