"""Semantic versions are read and ordered as semver.org says."""

import pytest

from casaba.errors import InvalidInput
from casaba.model.version import parsed_version

IN_ORDER = (
    "0.9.0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
)


def test_versions_are_ordered() -> None:
    versions = [parsed_version(text) for text in IN_ORDER]
    for index, version in enumerate(versions):
        assert [version.compare(other) for other in versions] == [
            (index > other) - (index < other) for other in range(len(versions))
        ]


def test_the_build_part_does_not_count() -> None:
    assert parsed_version("1.2.3+one").compare(parsed_version("1.2.3+two")) == 0


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3.4", "1.2.3+"]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a semantic version"):
        parsed_version(text)
