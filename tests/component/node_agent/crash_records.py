"""At which moments of its life an agent can die: found out by letting one live."""

from pathlib import Path

from tests.component.node_agent.agents import Moment, recorded_moments
from tests.component.node_agent.crash_site import CrashSite, agents_kept
from tests.component.node_agent.doomed_agent import RECORD_IN


def moments(record: Path, *, begin: str, end: str) -> list[Moment]:
    """What happened between two lines of the log (no `begin`: from the start), the second too."""
    lines = record.read_text().splitlines()
    first = lines.index(f"log {begin}") + 1 if begin else 0
    return recorded_moments("\n".join(lines[first : lines.index(f"log {end}", first) + 1]))


async def record_life(site: CrashSite, record: Path) -> None:
    """Write down every moment of an agent that prepares and unprepares one claim."""
    site.extra = {RECORD_IN: str(record)}
    async with agents_kept(site):
        await site.next_agent_serves(0)
        await site.add("record", ("10Gi", 50))
        await site.has_only("record")
        await site.remove("record")
        await site.has_only()
    site.extra = {}
