"""Quantities are read exactly and written in one form only."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server import quantities

WRITTEN = {
    "1024Mi": "1Gi",
    "0.5": "500m",
    "1000m": "1",
    "1000": "1k",
    "100": "100",
    "1e3": "1e3",
    "12e6": "12e6",
    "1.5Gi": "1536Mi",
    "0.1Gi": "107374182400m",
    "1025Mi": "1025Mi",
    "1000Ki": "1000Ki",
    "512Ki": "512Ki",
    "0Mi": "0",
    "-5": "-5",
    ".5": "500m",
    "0.1n": "1n",
    "9223372036854775808": "9223372036854775807",
}
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]


@pytest.mark.parametrize(("text", "canonical"), WRITTEN.items())
def test_a_quantity_is_written_as_the_server_writes_it(text: str, canonical: str) -> None:
    assert quantities.canonical(text) == canonical


@given(st.integers(-(10**6), 10**6), st.sampled_from(SUFFIXES))
def test_the_canonical_form_is_the_same_quantity(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    canonical = quantities.canonical(text)
    assert quantities.parsed(canonical) == quantities.parsed(text)
    assert quantities.canonical(canonical) == canonical


@pytest.mark.parametrize("text", ["", "x", "5Gib", "1 Gi", "Gi", "1Q"])
def test_what_is_no_quantity_is_told_with_the_form(text: str) -> None:
    with pytest.raises(quantities.NotAQuantity, match="quantities must match the regular"):
        quantities.canonical(text)


def test_a_number_that_is_none_is_told_apart_from_a_wrong_suffix() -> None:
    with pytest.raises(quantities.NotAQuantity, match="unable to parse numeric part"):
        quantities.parsed("1.1.1")
    with pytest.raises(quantities.NotAQuantity, match="unable to parse quantity's suffix"):
        quantities.parsed("1ee")


def test_a_sum_keeps_the_style_of_the_first() -> None:
    assert quantities.plus("1Gi", "1Gi") == "2Gi"
    assert quantities.plus("500m", "1") == "1500m"
    assert quantities.parsed(quantities.plus("1Ki", "1")) == Decimal(1025)
