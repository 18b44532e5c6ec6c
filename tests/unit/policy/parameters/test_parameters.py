"""Opaque parameters: what is read, what is refused, and what the guard is told."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.policy.parameters import (
    MAX_WEIGHT,
    CorePolicy,
    SliceParameters,
    compute_terms,
    parse_parameters,
)

parameters = st.builds(
    SliceParameters,
    weight=st.none() | st.integers(1, MAX_WEIGHT),
    core_policy=st.none() | st.sampled_from(CorePolicy),
    priority=st.none() | st.sampled_from([0, 1]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def written(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "casaba.dev/v1alpha1", "kind": "SliceParameters"} | fields


@given(parameters)
def test_what_is_written_is_read_again(values: SliceParameters) -> None:
    assert parse_parameters(json.loads(json.dumps(values.as_object()))) == values


def test_nothing_said_is_nothing() -> None:
    assert parse_parameters(written()) == SliceParameters()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (None, "parameters: nothing is not an object"),
        ([], "parameters: a list is not an object"),
        ("weight", "parameters: 'weight' is not an object"),
        ({}, "apiVersion: nothing, but only casaba.dev/v1alpha1 is known"),
        (written(apiVersion="casaba.dev/v1"), "apiVersion: 'casaba.dev/v1', but only"),
        (written(kind="Slice"), "kind: 'Slice', but only SliceParameters is known"),
        (written(weight=0), "weight: 0 is not a whole number from 1 to 1000"),
        (written(weight=1001), "weight: 1001 is not"),
        (written(weight=10**6000), "weight: a number of so many digits is not"),
        (written(weight="5"), "weight: '5' is not a whole number"),
        (written(weight=5.0), "weight: 5.0 is not a whole number"),
        (written(weight=True), "weight: true is not a whole number"),
        (written(weight=None), "weight: nothing is not a whole number"),
        (written(priority=2), r"priority: 2 is not .* from 0 to 1 \(0: high, 1: low\)"),
        (written(priority=False), "priority: false is not"),
        (written(corePolicy="FORCE"), "corePolicy: 'FORCE' is none of default, force, disable"),
        (written(corePolicy={}), "corePolicy: an object is none of"),
        (written(wieght=1), "wieght: no such field, did you mean weight?"),
        (written(sharing=1), "sharing: no such field; there are weight, corePolicy, priority"),
        (written(**{"x" * 5000: 1}), "x…: no such field"),
    ],
)
def test_what_is_wrong_is_named(raw: object, text: str) -> None:
    with pytest.raises(InvalidInput, match=text) as caught:
        parse_parameters(raw)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("kind", ["GpuConfig", "MigDeviceConfig", "VfioDeviceConfig"])
def test_parameters_of_the_other_driver_are_told_what_to_do(kind: str) -> None:
    raw = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": kind,
        "sharing": {"strategy": "TimeSlicing"},
    }
    with pytest.raises(InvalidInput, match=f"'{kind}' .* leave the entry out, since memory and"):
        parse_parameters(raw)


@given(json_values | st.dictionaries(st.text(), json_values).map(lambda more: written(**more)))
def test_any_json_is_read_or_refused(raw: object) -> None:
    with contextlib.suppress(InvalidInput):
        assert parse_parameters(parse_parameters(raw).as_object()) == parse_parameters(raw)


@given(parameters, parameters)
def test_later_entries_win_field_by_field(first: SliceParameters, later: SliceParameters) -> None:
    both = first.overlaid(later)
    for name in ("weight", "core_policy", "priority"):
        said = getattr(later, name)
        assert getattr(both, name) == (getattr(first, name) if said is None else said)


@pytest.mark.parametrize(
    ("values", "cores", "cap", "weight"),
    [
        (SliceParameters(), 50, 50, 500),
        (SliceParameters(), 100, 100, 1000),
        (SliceParameters(), 0, 0, 1),
        (SliceParameters(weight=3), 50, 50, 30),
        (SliceParameters(weight=1000), 50, 50, 10_000),
        (SliceParameters(weight=3), 0, 0, 3),
        (SliceParameters(weight=1000), 0, 0, 10),
        (SliceParameters(priority=1), 50, 50, 500),
        (SliceParameters(priority=0), 50, 50, 5000),
        (SliceParameters(priority=0), 0, 0, 10),
        (SliceParameters(priority=0, weight=500), 50, 50, 10_000),
        (SliceParameters(core_policy=CorePolicy.DEFAULT), 50, 50, 500),
        (SliceParameters(core_policy=CorePolicy.FORCE), 50, 50, 500),
        (SliceParameters(core_policy=CorePolicy.DISABLE), 50, 0, 500),
        (SliceParameters(core_policy=CorePolicy.DISABLE, weight=1000), 50, 0, 500),
        (SliceParameters(core_policy=CorePolicy.DISABLE, weight=2), 50, 0, 20),
        (SliceParameters(core_policy=CorePolicy.DISABLE), 0, 0, 1),
    ],
)
def test_what_the_guard_is_told(values: SliceParameters, cores: int, cap: int, weight: int) -> None:
    terms = compute_terms(values, cores)
    assert (terms.cores_percent, terms.weight) == (cap, weight)


@given(parameters, st.integers(0, 100))
def test_nobody_outweighs_what_others_were_given(values: SliceParameters, cores: int) -> None:
    """Whoever has no cap weighs no more than its own cores; 0 would mean `by cores`."""
    terms = compute_terms(values, cores)
    assert terms.weight >= 1
    if terms.cores_percent == 0:
        assert terms.weight <= max(cores, 1) * 10
