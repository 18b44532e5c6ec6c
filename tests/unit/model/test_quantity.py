"""Quantities agree with apimachinery's."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model import quantity
from casaba.model.quantity import Notation, Quantity

SCALES = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("numkMGTPE", -3)},
    **{f"{prefix}i": Fraction(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
    "": Fraction(1),
}
# Between milli and kilo there is nothing, not a suffix.
SCALES |= {suffix: scale * 1000 for suffix, scale in SCALES.items() if suffix in set("kMGTPE")}

BEYOND_SUFFIXES = 1000 * 10**18 * 10**9
"""Billionths from which Kubernetes itself does not write amounts right."""

numbers = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(-1000, 1000, places=3, allow_nan=False).map(lambda number: f"{number:f}"),
)
texts = st.builds(lambda number, suffix: number + suffix, numbers, st.sampled_from([*SCALES]))


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
        ("1E3", 1000),
        ("5.", 5),
        ("+3", 3),
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


# The right-hand side is what kube-apiserver 1.36 answers with.
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5Gi", "1536Mi"),
        ("10240Mi", "10Gi"),
        ("1024Ki", "1Mi"),
        ("1001E", "1001E"),
        ("1000E", "1"),
        ("1500000E", "1500"),
        ("1000e18", "1e21"),
        ("1000Ki", "1000Ki"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("-1.5Gi", "-1536Mi"),
        ("0Gi", "0"),
        ("2000", "2k"),
        ("1500", "1500"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("0.5", "500m"),
        ("1e3", "1e3"),
        ("100e3", "100e3"),
        ("1.5e3", "1500"),
        ("1e1", "10"),
        ("1000000k", "1G"),
        ("0.1n", "1n"),
        # Kept as written: nearly canonical is good enough for apimachinery.
        ("1.500", "1.500"),
        ("84.125k", "84.125k"),
        ("+3", "+3"),
        ("1E3", "1E3"),
        ("1.50", "1500m"),
        ("1025Ki", "1025Ki"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(quantity.quantity(text)) == canonical


@given(texts)
def test_canonical_text_means_the_same_and_stays(text: str) -> None:
    made = quantity.quantity(text)
    assume(abs(made.nanos) < BEYOND_SUFFIXES)
    again = quantity.quantity(str(made))
    assert again.nanos == made.nanos
    assert str(again) == str(made)


@given(st.integers(-(10**15), 10**15), st.sampled_from([*SCALES]))
def test_amounts_are_exact_to_a_billionth(number: int, suffix: str) -> None:
    exact = abs(number) * SCALES[suffix]
    nanos = -(-exact.numerator * 10**9 // exact.denominator)
    if suffix.endswith("i"):
        nanos = min(nanos, (2**63 - 1) * 10**9)
    assert quantity.quantity(f"{number}{suffix}").nanos == (nanos if number >= 0 else -nanos)


@given(texts, texts)
def test_sums_are_exact_and_undone(one: str, other: str) -> None:
    first, second = quantity.quantity(one), quantity.quantity(other)
    assert (first + second).nanos == first.nanos + second.nanos
    assert (first + second - second).nanos == first.nanos


def test_zero_takes_the_notation_of_what_is_added() -> None:
    assert str(Quantity(0) + quantity.quantity("2048Ki")) == "2Mi"


@given(st.integers(min_value=0, max_value=2**62))
def test_binary_text_is_exact(value: int) -> None:
    assert quantity.parse(quantity.format_binary(value)) == value


def test_whole_numbers_in_binary_notation_below_1024_have_no_suffix() -> None:
    assert str(quantity.whole(1000, Notation.BINARY)) == "1k"
    assert str(quantity.whole(2048, Notation.BINARY)) == "2Ki"
