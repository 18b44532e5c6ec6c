"""The agent's process is killed around each of its requests to the API server."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from casaba.kube import RESOURCE_SLICES
from casaba.simulation.api_server.faults import LostAnswer, Target
from casaba.simulation.cluster import AGENT_USER
from tests.component.node_agent.crash_rules import check_whole
from tests.component.node_agent.crash_site import CrashSite, agents_kept, crash_site

_SLICES = RESOURCE_SLICES.decoded_as(dict)


async def restart(site: CrashSite) -> None:
    """End the agent: the next one begins anew."""
    site.kill_agent()


async def delete_slice(site: CrashSite) -> None:
    """As the kubelet does at its start."""
    (found,) = site.objects("resourceslices")
    await site.client.delete(_SLICES, found["metadata"]["name"])


async def edit_slice(site: CrashSite) -> None:
    """As a person might."""
    (found,) = site.objects("resourceslices")
    brand = "/spec/devices/0/attributes/brand/string"
    patch = [{"op": "replace", "path": brand, "value": "another"}]
    await site.client.patch(_SLICES, found["metadata"]["name"], patch)


async def add_slice(site: CrashSite) -> None:
    """A second one that offers the same card."""
    (found,) = site.slices()
    spec = json.loads(json.dumps(found))
    await site.client.create(_SLICES, {"metadata": {"name": "second"}, "spec": spec})


async def add_pod(site: CrashSite) -> None:
    """A pod with a claim."""
    await site.add("asking", ("10Gi", 50))


CHANGES: dict[tuple[str, str], Callable[[CrashSite], Awaitable[None]]] = {
    ("get", "nodes"): restart,
    ("watch", "resourceslices"): restart,
    ("list", "resourceslices"): delete_slice,
    ("create", "resourceslices"): delete_slice,
    ("patch", "resourceslices"): edit_slice,
    ("delete", "resourceslices"): add_slice,
    ("get", "resourceclaims"): add_pod,
}
"""What makes the agent ask, by verb and resource."""


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_killed_around_each_request(short_folder: Path, done: bool) -> None:
    """Before the API server does what the agent asks for, or after, but before the answer."""
    async with crash_site(short_folder) as site, agents_kept(site):
        await site.next_agent_serves(0)
        await site.until("the slice is published", lambda: len(site.slices()) == 1)
        (wanted,) = site.slices()
        deaths = 0
        for (verb, plural), change in CHANGES.items():
            await site.until("the agent watches", lambda: site.said("slices.followed"))
            if verb == "create":  # an agent tries it by a dry run before it creates its first
                await delete_slice(site)
                await site.until("there is another", lambda: site.slices() == [wanted])
            target = Target(usernames={AGENT_USER}, verbs={verb}, resources={plural})
            site.server.faults.add(LostAnswer(done=done, then=site.kill_agent), target)
            await change(site)
            deaths += 2 if change is restart else 1
            await site.next_agent_serves(deaths)
            await site.until("there is one right slice", lambda: site.slices() == [wanted])
        await site.has_only("asking")
        check_whole(site, "asking")
