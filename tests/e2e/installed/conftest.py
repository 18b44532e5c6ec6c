"""The release that the tests of this folder share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.cluster.bed import Bed, gpu_node
from tests.cluster.waiting import wait_until
from tests.conftest import BareBeds
from tests.e2e.charts import RELEASE
from tests.e2e.installed.objects import old_template, ruined_secrets
from tests.e2e.releases import NAMESPACE, PLACE, WAITING, install, wait_for_cards
from tests.e2e.workloads import POD_TIMEOUT_S

# Seven cards: what one tenant after the other of the examples may spread over, and a free one.
NODES = (gpu_node(1, "edge-1"), gpu_node(2, "edge-2", ("A10",) * 6))
_REUSED = "CASABA_TEST_CHART_BED"


@pytest.fixture(scope="package")
def release(bare_bed_of: BareBeds) -> Iterator[Bed]:
    """The chart on a node of one card and a node of six, with what an old release left behind."""
    with bare_bed_of("full", _REUSED, NODES) as bed:
        bed.kubectl("create", "namespace", NAMESPACE)
        left = {"apiVersion": "v1", "kind": "List", "items": [*ruined_secrets(), old_template()]}
        bed.kubectl("apply", "-f", "-", stdin=json.dumps(left))
        install(bed)
        for node in bed.nodes:
            wait_for_cards(bed, node.name, len(node.settings.cards))
        yield bed
        if os.environ.get(_REUSED):  # another bed goes as a whole
            _remove(bed)


def _remove(bed: Bed) -> None:
    """The agents last: without them no pod would end."""
    wait_until(
        "no pod has a card any more",
        lambda: bed.kubectl("get", "resourceclaims", "-o=name").stdout == "",
        POD_TIMEOUT_S,
    )
    bed.helm("uninstall", RELEASE, PLACE, "--no-hooks", *WAITING)
    bed.kubectl("delete", "resourceclaimtemplates,resourceslices", "--all")
    bed.kubectl("delete", "namespace", NAMESPACE)
