"""Fixtures of the simulated cluster's parts."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.component.simulation.kubelets import NodeUnderTest, node_under_test


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="casaba-") as folder:
        yield Path(folder)


@pytest_asyncio.fixture
async def node(short_folder: Path) -> AsyncIterator[NodeUnderTest]:
    """A node whose kubelet does not run yet."""
    async with node_under_test(short_folder) as node:
        yield node
