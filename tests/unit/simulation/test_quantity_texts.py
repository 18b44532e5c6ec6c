"""Quantities in bodies: one form is stored, and what is none is told in the server's words."""

import pytest

from casaba.simulation.api_server.quantity_texts import NotAQuantity, canonical

WRITTEN = {
    "1024Mi": "1Gi",
    "0.5": "500m",
    "1000m": "1",
    "1000": "1k",
    "1.5Gi": "1536Mi",
    "0.1Gi": "107374182400m",
    "0Mi": "0",
    ".5": "500m",
    "9223372036854775808": "9223372036854775808",
    "100Ei": "9223372036854775807",
    "1e0": "1e0",
    "+5": "+5",
}


@pytest.mark.parametrize(("text", "stored"), WRITTEN.items())
def test_a_quantity_is_written_as_the_server_writes_it(text: str, stored: str) -> None:
    assert canonical(text) == stored


@pytest.mark.parametrize("text", ["", "x", "5Gib", "1 Gi", "Gi", "1Q"])
def test_what_is_no_quantity_is_told_with_the_form(text: str) -> None:
    with pytest.raises(NotAQuantity, match="quantities must match the regular"):
        canonical(text)


def test_a_number_that_is_none_is_told_apart_from_a_wrong_suffix() -> None:
    with pytest.raises(NotAQuantity, match="unable to parse numeric part"):
        canonical("1.1.1")
    with pytest.raises(NotAQuantity, match="unable to parse quantity's suffix"):
        canonical("1ee")
