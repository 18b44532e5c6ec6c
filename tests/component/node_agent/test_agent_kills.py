"""The agent's process is killed at every step of its work, under a kubelet that goes on.

After each kill the next agent starts, as a service does, and the kubelet tries again. Then no
share is promised twice, nothing is left of claims that are gone, and every pod gets to run.
"""

import uuid
from itertools import zip_longest
from pathlib import Path

from tests.component.node_agent.agents import Moment
from tests.component.node_agent.crash_records import moments, record_life
from tests.component.node_agent.crash_rules import check_whole
from tests.component.node_agent.crash_site import CrashSite, agents_kept, crash_site
from tests.component.node_agent.doomed_agent import RECORD_IN

HALF = ("10Gi", 50)


async def test_killed_at_every_step_of_prepare_and_unprepare(short_folder: Path) -> None:
    record = short_folder / "record"
    async with crash_site(short_folder) as site:
        await record_life(site, record)
        prepare = moments(record, begin="slice.published", end="claim.prepared")
        unprepare = moments(record, begin="claim.prepared", end="claim.unprepared")
        assert len(prepare) >= 17
        assert len(unprepare) >= 7
        rounds = list(zip_longest(prepare, unprepare))
        async with agents_kept(site, *(doom for pair in rounds for doom in pair)):
            deaths = 0
            for number, (_, second) in enumerate(rounds):
                pod = f"round{number}"
                await site.add(pod, HALF)
                deaths += 1
                await site.has_only(pod)
                await site.next_agent_serves(deaths)
                inodes = check_whole(site, pod)
                await site.remove(pod)
                deaths += 1
                if second is None:
                    site.kill_agent()
                await site.has_only()
                await site.next_agent_serves(deaths)
                assert check_whole(site) == {} != inodes


async def test_killed_at_every_step_of_its_start(short_folder: Path) -> None:
    """On a fresh machine, and once more where there are leftovers and a tenant."""
    record = short_folder / "record"
    async with crash_site(short_folder / "a") as site:
        await record_life(site, record)
    fresh = moments(record, begin="", end="kubelet.registered")
    fresh = [Moment(event=one.event, path=one.path.replace("/a/", "/b/")) for one in fresh]
    async with crash_site(short_folder / "b") as site, agents_kept(site, *fresh):
        await site.next_agent_serves(len(fresh))
        await site.add("tenant", HALF)
        await site.has_only("tenant")
        inodes = check_whole(site, "tenant")
        site.before_start = lambda: leave_things_behind(site)
        site.extra = {RECORD_IN: str(short_folder / "again")}
        site.kill_agent()
        await site.next_agent_serves(len(fresh) + 1)
        again = moments(short_folder / "again", begin="", end="host.swept")
        removals = [one for one in again if one.event in ("os.remove", "os.rmdir")]
        assert len(removals) >= 6
        site.extra = {}
        site.dooms.extend(removals)
        site.kill_agent()
        await site.next_agent_serves(len(fresh) + 2 + len(removals))
        assert check_whole(site, "tenant") == inodes


def leave_things_behind(site: CrashSite) -> None:
    """Of an agent that died: a claim that nobody promised, and files that are not whole."""
    nobody = str(uuid.UUID(int=1))
    budget = site.paths.claims_dir / nobody / "gpu"
    budget.mkdir(parents=True, exist_ok=True)
    for path in (
        budget / "policy",
        budget / ".region.12345678",
        site.paths.cdi_dir / f"casaba.dev-claim_{nobody}.json",
        site.paths.cdi_dir / f".casaba.dev-claim_{nobody}.json.12345678",
        site.paths.checkpoint_dir / f".{nobody}.json.12345678",
    ):
        path.write_text("left behind")


async def test_killed_amid_eight_claims_of_one_call(short_folder: Path) -> None:
    made = [Moment(event="os.rename", path="/(policy|region)$", times=times) for times in (5, 9)]
    made += [Moment(event="log", path="^claim.prepared$", times=number) for number in (1, 4, 8)]
    gone = [Moment(event="log", path="^claim.unprepared$", times=number) for number in (1, 5, 8)]
    async with crash_site(short_folder) as site, agents_kept(site, *made):
        await site.add("many", ("1Gi", 5), claims=8)
        await site.has_only("many")
        await site.next_agent_serves(len(made))
        assert len(check_whole(site, "many")) == 8
        site.dooms.extend(gone)
        site.kill_agent()
        await site.next_agent_serves(len(made) + 1)
        await site.remove("many")
        await site.has_only()
        await site.next_agent_serves(len(made) + 1 + len(gone))
        check_whole(site)
