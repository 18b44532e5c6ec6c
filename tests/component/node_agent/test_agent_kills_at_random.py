"""Pods come and go while agents die: at known moments, at any moment, several in a row."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.component.node_agent.agents import Moment
from tests.component.node_agent.crash_records import moments, record_life
from tests.component.node_agent.crash_rules import (
    Inodes,
    check_nothing_promised_twice,
    check_whole,
)
from tests.component.node_agent.crash_site import CrashSite, agents_kept, crash_site

STEPS = 8
MOST_PODS = 4
LONGEST_LIFE_S = 0.3


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_happens(short_folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    record = short_folder / "record"
    async with crash_site(short_folder) as site:
        await record_life(site, record)
        known = moments(record, begin="", end="claim.unprepared")
        async with agents_kept(site):
            await walk(site, chance, known)
            site.dooms.clear()
            site.kill_agent()
            for pod in sorted(site.running()):
                await site.remove(pod)
            await site.has_only()
            await site.current_agent_serves()
            assert check_whole(site) == {}


async def walk(site: CrashSite, chance: random.Random, known: list[Moment]) -> None:
    """Steps of one pod more or less; at the end of each, when all is quiet, the rules hold."""
    pods: list[str] = []
    budgets: Inodes = {}
    names = (f"pod{number}" for number in range(STEPS))
    for _ in range(STEPS):
        site.dooms.extend(chance.choices(known, k=chance.randrange(4)))
        if chance.random() < 0.7:
            loop = asyncio.get_running_loop()
            loop.call_later(chance.uniform(0, LONGEST_LIFE_S), site.kill_agent)
        await change(site, chance, pods, names)
        check_nothing_promised_twice(site)
        if chance.random() < 0.5:
            site.kill_agent()
        await site.has_only(*pods)
        site.dooms.clear()
        await site.current_agent_serves()
        found = check_whole(site, *pods)
        assert {key: found[key] for key in budgets if key in found}.items() <= budgets.items()
        budgets = found


async def change(
    site: CrashSite, chance: random.Random, pods: list[str], names: Iterator[str]
) -> None:
    """A new pod with one to three claims, or one less."""
    if pods and (len(pods) == MOST_PODS or chance.random() < 0.4):
        await site.remove(pods.pop(chance.randrange(len(pods))))
    else:
        pods.append(next(names))
        await site.add(pods[-1], ("1Gi", 5), claims=chance.randint(1, 3))
