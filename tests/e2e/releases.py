"""The chart's release on a bare bed: installed, seen, taken away."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.charts import CHART, RELEASE
from tests.e2e.workloads import SLICE_TIMEOUT_S, slices

NAMESPACE = "hami-system"
PLACE = f"--namespace={NAMESPACE}"
WAITING = ("--wait", "--timeout=240s")

GONE_TIMEOUT_S = 60.0
"""What belonged to others goes by their own garbage collection."""

_AGENT = "app.kubernetes.io/component=node-agent"


def install(bed: Bed, *values: str) -> None:
    """Install it and wait for its pods."""
    bed.helm("install", RELEASE, str(CHART), PLACE, "--create-namespace", *values, *WAITING)


def uninstall(bed: Bed, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Take it away as people do, with hooks; what they say is on stderr."""
    return bed.helm("uninstall", RELEASE, PLACE, *WAITING, check=check)


def remove_rest(bed: Bed) -> None:
    """Whatever became of the release, the namespace is gone after this."""
    bed.helm("uninstall", RELEASE, PLACE, "--no-hooks", "--ignore-not-found", *WAITING)
    bed.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_s=120.0)


def wait_for_cards(bed: Bed, node: str, count: int, timeout_s: float = SLICE_TIMEOUT_S) -> None:
    """Until a node offers so many cards; tells what its agent says if it does not."""
    agents = ("logs", PLACE, f"--selector={_AGENT}", "--prefix")
    wait_until(
        f"{node} offers {count} cards",
        lambda: sum(len(item["spec"].get("devices", [])) for item in slices(bed, node)) == count,
        timeout_s,
        explain=lambda: bed.kubectl(*agents, check=False).stdout,
    )


def wait_for_event(bed: Bed, node: str, reason: str) -> None:
    """Until people can read on a Node why something is as it is."""
    selector = f"--field-selector=reason={reason},involvedObject.name={node}"
    wait_until(
        f"an event {reason} on {node}",
        lambda: bool(bed.kubectl("get", "events", selector, "-o", "name").stdout),
        SLICE_TIMEOUT_S,
    )


def wait_for_no_difference(what: str, difference: Callable[[], str], timeout_s: float) -> None:
    """Until a comparison finds nothing; the error tells what it found last."""
    found: list[str] = [""]

    def nothing() -> bool:
        found[0] = difference()
        return not found[0]

    wait_until(what, nothing, timeout_s, explain=lambda: f"The difference:\n{found[0]}")


def of_pod(bed: Bed, name: str) -> dict[str, Any]:
    """A pod as the API server has it."""
    return dict(json.loads(bed.kubectl("get", "pod", name, "-o", "json").stdout))


def granted(bed: Bed, pod: str) -> list[dict[str, str]]:
    """What the claims made for a pod have of their cards."""
    made = of_pod(bed, pod)["status"]["resourceClaimStatuses"]
    names = [entry["resourceClaimName"] for entry in made]
    found = (
        json.loads(bed.kubectl("get", "resourceclaim", name, "-o", "json").stdout) for name in names
    )
    return [
        result["consumedCapacity"]
        for claim in found
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
