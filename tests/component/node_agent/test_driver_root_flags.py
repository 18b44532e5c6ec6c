"""Where the agent and where the host sees the driver, by flags."""

from pathlib import Path

import pytest

from casaba.cli import node_agent
from casaba.errors import InvalidInput


def host_driver_root(*flags: str) -> Path | None:
    return node_agent.settings_from(node_agent._parser().parse_args(flags)).host_driver_root


def test_another_path_on_the_host() -> None:
    assert host_driver_root("--driver-root=/host", "--host-driver-root=/") == Path("/")


@pytest.mark.parametrize(
    "flags", [(), ("--driver-root=/run/nvidia/driver", "--host-driver-root=/run/nvidia/driver")]
)
def test_the_same_path(flags: tuple[str, ...]) -> None:
    assert host_driver_root(*flags) is None


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--driver-root=/host", "--host-driver-root=driver"), "give a path from / on"),
        (("--host-driver-root=/run/nvidia/driver",), "a folder of its own, such as /host"),
    ],
)
def test_what_can_not_be(flags: tuple[str, ...], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        host_driver_root(*flags)
