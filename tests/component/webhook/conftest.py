"""A site with one webhook that the API server asks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.webhook import site as sites
from tests.component.webhook.site import Replica, Site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """Nobody is asked yet."""
    async with sites.site(tmp_path) as site:
        yield site


@pytest.fixture
async def replica(site: Site) -> AsyncIterator[Replica]:
    """The one that is asked."""
    async with site.replica() as replica:
        await site.ask_webhook(replica)
        yield replica
