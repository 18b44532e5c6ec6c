"""Settings of the conversion."""

from typing import Any

import pytest

from casaba.errors import InvalidInput
from casaba.settings.conversion import ConversionSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default_count", -1),
        ("default_memory_mib", -1),
        ("default_cores_percent", 101),
        ("default_cores_percent", -1),
        ("memory_factor", 0),
        ("core_policy", "off"),
        ("count_resource", ""),
        ("count_resource", "nvidia.com/gpumem"),
    ],
)
def test_values_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        ConversionSettings(**{name: value})
