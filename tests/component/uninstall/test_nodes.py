"""The run of an uninstall over its DaemonSets, with all that can go wrong on the way."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from casaba.errors import CasabaError
from casaba.kube import Forbidden, KubeError, Unreachable
from casaba.kube.errors import refusal
from casaba.policy.removal import ClusterSeen, CreateCleaner, Delete
from casaba.services.uninstall.nodes import NodeCleaning, NodesNotClean, by_hand, clean_nodes
from casaba.settings.uninstall import HelmRelease, UninstallSettings
from casaba.simulation.api_server import SimulatedApiServer
from casaba.wire.kubernetes import Status
from tests.unit.policy.removal.release import Release

ORDER = ["delete agent", "create cleaner", "delete cleaner"]
SETTINGS = UninstallSettings(namespace="hami-system", poll_s=0.001, timeout_s=60.0)
LATE = 30
"""Requests after which the time is over."""


@dataclass
class Slow:
    """A release whose nodes work each time that somebody looks, and what happens to requests."""

    release: Release = field(default_factory=Release)
    requests: int = 0
    meet: Callable[[int], None] = lambda _: None
    """Hears the number of each request; may raise."""

    def __post_init__(self) -> None:
        self.release.install()
        for node in self.release.nodes:
            self.release.works(node)

    async def look(self) -> ClusterSeen:
        self._asked()
        seen = self.release.seen()
        for node in self.release.nodes:
            self.release.works(node)
        return seen

    async def carry_out(self, step: Delete | CreateCleaner) -> None:
        self._asked()
        self.release.act(step)

    def _asked(self) -> None:
        self.requests += 1
        self.meet(self.requests)


def time_is_over(number: int) -> None:
    """As asyncio.timeout does it."""
    if number == LATE:
        raise TimeoutError


async def run(sets: Slow, settings: UninstallSettings = SETTINGS) -> list[str]:
    told: list[str] = []
    await NodeCleaning(sets, settings, told.append).run()
    return told


async def test_the_agents_end_before_their_nodes_are_cleaned() -> None:
    sets = Slow()
    assert sets.release.dirty == {"a", "b"}
    told = await run(sets)
    assert sets.release.done == ORDER
    assert sets.release.dirty == set()
    assert sets.release.seen() == ClusterSeen()
    assert told[0] == "ending the agents"
    assert "every node is clean" in told


async def test_done_again_it_cleans_again() -> None:
    sets = Slow()
    await run(sets)
    await run(sets)
    assert sets.release.done == [*ORDER, *ORDER[1:]]


class Killed(BaseException):
    """The process is gone."""


async def test_killed_at_any_request_it_goes_on() -> None:
    whole = Slow()
    await run(whole)
    for last in range(1, whole.requests + 1):

        def die(number: int, last: int = last) -> None:
            if number == last:
                raise Killed

        sets = Slow(meet=die)
        with pytest.raises(Killed):
            await run(sets)
        sets.meet = lambda _: None
        await run(sets)
        assert sets.release.dirty == set()
        assert sets.release.seen() == ClusterSeen()


async def test_requests_that_fail_are_made_again() -> None:
    def fail(number: int) -> None:
        if number % 3 == 1:
            raise Unreachable("get /apis/apps/v1: connection refused")

    sets = Slow(meet=fail)
    await run(sets)
    assert sets.release.done == ORDER


async def test_rights_do_not_come_by_waiting() -> None:
    status = Status(code=403, reason="Forbidden", message="no")

    def forbid(_: int) -> None:
        raise refusal("get /apis/apps/v1", status)

    with pytest.raises(Forbidden, match="grant it with RBAC"):
        await run(Slow(meet=forbid))


async def test_a_node_that_does_not_answer_is_named() -> None:
    sets = Slow(meet=time_is_over)
    sets.release.broken = {"b"}
    with pytest.raises(NodesNotClean, match=r"60 s: node b: .*kube-controller") as raised:
        await run(sets, replace(SETTINGS, release=HelmRelease(name="gpus", revision="3")))
    assert "--set uninstall.cleanNodes=false, then uninstall" in str(raised.value)
    assert "or keep casaba: helm rollback gpus 3 -n NAMESPACE" in str(raised.value)
    assert sets.release.done == ["delete agent"]


async def test_a_node_that_is_away_is_told_with_what_cleans_it_later() -> None:
    sets = Slow()
    sets.release.silent = {"b"}
    told: list[str] = []
    flags = ["node-clean", "--host-root=/host", "--kubelet-dir=/var/lib/k0s/kubelet"]
    clean = {"image": "casaba.dev/node-agent:1", "args": flags}
    cleaner = {"spec": {"template": {"spec": {"initContainers": [clean]}}}}
    await NodeCleaning(sets, SETTINGS, told.append, by_hand=by_hand(cleaner)).run()
    assert sets.release.done == ORDER
    assert sets.release.dirty == {"b"}
    (named,) = [line for line in told if "not Ready" in line]
    assert "not Ready: b. " in named
    assert named.endswith(
        "kubectl debug node/NODE --profile=sysadmin --image=casaba.dev/node-agent:1"
        " -- casaba node-clean --host-root=/host --kubelet-dir=/var/lib/k0s/kubelet"
    )


async def test_nodes_whose_agents_were_switched_off_are_cleaned() -> None:
    sets = Slow()
    sets.release.agent = None
    sets.release.agent_pods.clear()
    await run(sets)
    assert sets.release.done == ["create cleaner", "delete cleaner"]
    assert sets.release.dirty == set()


async def test_a_cleaner_that_is_late_does_not_stay() -> None:
    sets = Slow(meet=time_is_over)
    sets.release.agent = None
    sets.release.agent_pods.clear()
    sets.release.broken = {"b"}
    with pytest.raises(NodesNotClean, match="1 of 2 nodes are clean"):
        await run(sets)
    assert sets.release.done == ["create cleaner", "delete cleaner"]


async def test_a_cleaner_whose_work_is_done_may_take_its_time() -> None:
    sets = Slow(meet=time_is_over)
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if line == "every node is clean":
            sets.release.broken = {"b"}

    await NodeCleaning(sets, SETTINGS, tell).run()
    assert sets.release.done == ORDER
    assert told[-1].startswith("not waited for: node b")


async def test_a_cluster_that_does_not_answer_is_told() -> None:
    def fail(_: int) -> None:
        raise Unreachable("get /apis/apps/v1: connection refused")

    settings = UninstallSettings(namespace="x", poll_s=0.001, timeout_s=0.1)
    with pytest.raises(NodesNotClean, match=r"not done after 0\.1 s: (get /apis|the cluster)"):
        await run(Slow(meet=fail), settings)


def kubeconfig(server: SimulatedApiServer, folder: Path) -> Path:
    path = folder / "kubeconfig"
    path.write_text(json.dumps(server.kubeconfig("kubernetes-admin", ("system:masters",))))
    return path


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "can't read --cleaner"),
        ("{", "not a DaemonSet"),
        ("[]", "not a DaemonSet"),
        ('{"kind": "DaemonSet"}', "not a DaemonSet"),
        ('{"kind": "Pod", "metadata": {"name": "x"}}', "it is a Pod"),
        ('{"kind": "DaemonSet", "metadata": {"name": "agent"}}', "the agent's name"),
    ],
)
async def test_a_wrong_cleaner_is_refused(tmp_path: Path, content: str | None, told: str) -> None:
    cleaner = tmp_path / "cleaner.json"
    if content is not None:
        cleaner.write_text(content)
    settings = UninstallSettings(namespace="x", agent="agent", cleaner=cleaner)
    with pytest.raises(CasabaError, match=told) as caught:
        await clean_nodes(settings, print)
    assert not isinstance(caught.value, KubeError)


async def test_pods_of_an_agent_are_found_by_their_owner(tmp_path: Path) -> None:
    """Also when their DaemonSet is gone, and whatever labels they have."""
    cleaner = tmp_path / "cleaner.json"
    cleaner.write_text('{"kind": "DaemonSet", "metadata": {"name": "cleaner"}}')
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}
    async with SimulatedApiServer() as server:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "agent-x",
                "namespace": "default",
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {"nodeName": "gpu-7", "containers": [{"name": "c", "image": "i"}]},
        }
        server.seed([body])
        settings = UninstallSettings(
            namespace="default",
            kubeconfig=kubeconfig(server, tmp_path),
            agent="agent",
            cleaner=cleaner,
        )

        def tell(line: str) -> None:
            raise Killed(line)

        with pytest.raises(Killed, match="waiting for the end of the agent: node gpu-7"):
            await clean_nodes(settings, tell)
