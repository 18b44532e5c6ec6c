"""What most tests of the simulated API server's rules begin with."""

import pytest

from tests.unit.simulation.small_cluster import SmallCluster


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster()
