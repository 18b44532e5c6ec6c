"""Driver versions become semver."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model.version import cuda_version, semver

SEMVER = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}")


@pytest.mark.parametrize(
    ("text", "version"),
    [("580.126.09", "580.126.9"), ("440.33", "440.33.0"), ("535", "535.0.0")],
)
def test_driver_version(text: str, version: str) -> None:
    assert semver(text) == version


@given(st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,2}", fullmatch=True))
def test_every_driver_version_becomes_strict_semver(text: str) -> None:
    assert SEMVER.fullmatch(semver(text))


@pytest.mark.parametrize("text", ["", "a", "1.2.3.4", "580.x", "1..2"])
def test_no_driver_version(text: str) -> None:
    with pytest.raises(InvalidInput, match="driver version"):
        semver(text)


def test_cuda_version() -> None:
    assert [cuda_version(number) for number in (13000, 12080)] == ["13.0.0", "12.8.0"]
