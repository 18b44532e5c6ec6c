"""`python -m tests.bench [NAME…]`: all groups of figures, or those that hold the names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from tests.bench import (
    agent,
    client,
    cluster,
    compute,
    images,
    local,
    memory,
    scrape,
    simulation,
    webhook,
)
from tests.bench.figures import Figure, tell

AGENT = (
    "prepare_p50",
    "prepare_p99",
    "prepare_100_at_once_s",
    "prepare_100_failures",
    "agent_pss",
    "agent_idle_cpu",
)
GROUPS: dict[str, tuple[Callable[[], Iterator[Figure]], tuple[str, ...]]] = {
    "local": (local.measure, local.FIGURES),
    "memory": (memory.measure, memory.FIGURES),
    "agent": (agent.measure, AGENT),
    "client": (client.measure, client.FIGURES),
    "cluster": (cluster.measure, ("cluster_share_error",)),
    "compute": (compute.measure, compute.FIGURES),
    "images": (images.measure, images.FIGURES),
    "scrape": (scrape.measure, scrape.FIGURES),
    "simulation": (simulation.measure, simulation.FIGURES),
    "webhook": (webhook.measure, webhook.FIGURES),
}


def main(wanted: list[str]) -> int:
    """Measure; the exit code is 1 if a figure misses its bound, 2 for an unknown name."""
    known = {name for group, (_, figures) in GROUPS.items() for name in (group, *figures)}
    if unknown := set(wanted) - known:
        print(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
        return 2
    chosen = [
        measure
        for group, (measure, figures) in GROUPS.items()
        if not wanted or {group, *figures} & set(wanted)
    ]
    kept = [tell(measure()) for measure in chosen]  # all of them, also after a miss
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
