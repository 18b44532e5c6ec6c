"""Fixtures of the simulated cluster's parts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.component.simulation.kubelets import NodeUnderTest, node_under_test


@pytest_asyncio.fixture
async def node(short_folder: Path) -> AsyncIterator[NodeUnderTest]:
    """A node whose kubelet does not run yet."""
    async with node_under_test(short_folder) as node:
        yield node
