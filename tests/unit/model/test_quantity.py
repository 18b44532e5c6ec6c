"""Quantities agree with apimachinery's."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10Gi", 10 << 30),
        ("23028Mi", 23028 << 20),
        ("50", 50),
        ("1.5Gi", 3 << 29),
        ("1e3", 1000),
        ("1E", 10**18),
        ("2k", 2000),
        ("100m", 1),
        ("0", 0),
        ("-1", -1),
        (".5Ki", 512),
        ("1500u", 1),
    ],
)
def test_value(text: str, value: int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "1K", "1 Gi", " 1", "1_000", "\u0661", "1e3Ki", "Infinity", "NaN", "Gi", "1gb", "0x10"],
)
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a quantity"):
        quantity.parse(text)


@given(st.integers(min_value=0, max_value=2**62))
def test_binary_text_is_exact(value: int) -> None:
    assert quantity.parse(quantity.format_binary(value)) == value


@given(st.integers(min_value=0, max_value=10**9), st.sampled_from("numkMGT"))
def test_fractions_are_rounded_up(number: int, suffix: str) -> None:
    scale = Fraction(1000) ** ("numkMGT".index(suffix) - 3 + ("numkMGT".index(suffix) > 2))
    exact = number * scale
    assert quantity.parse(f"{number}{suffix}") == -(-exact.numerator // exact.denominator)
