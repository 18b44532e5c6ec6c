"""The kubelet's side of a plugin's sockets, where plugins go away."""

from pathlib import Path

import pytest

from casaba.net.dra_client import PluginCallFailed, notify_registration
from tests.sockets import hanging_up

TIMEOUT_S = 10.0


async def test_a_connection_that_is_lost_at_once_is_a_failed_call(short_folder: Path) -> None:
    """At whatever moment of the call that is."""
    socket = short_folder / "plugin.sock"
    with hanging_up(socket):
        for _ in range(300):
            with pytest.raises(PluginCallFailed, match="Unavailable"):
                await notify_registration(socket, None, TIMEOUT_S)
