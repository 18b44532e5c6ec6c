"""The server that the client has to survive: simulated, or with `--real` the bed's."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.conformance.client.door import ServerUnderTest, real, simulated

OpenDoor = Callable[[], AbstractAsyncContextManager[ServerUnderTest]]


@pytest.fixture(scope="session")
def door(on_real: bool, request: pytest.FixtureRequest) -> OpenDoor:
    """Opens a door to the server under test."""
    return partial(real, request.getfixturevalue("bed")) if on_real else simulated
