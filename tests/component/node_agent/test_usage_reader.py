"""What a reader makes of a node's files from one reading to the next."""

import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from casaba.model.claim import AllocatedClaim
from casaba.model.node_use import NodeUse
from casaba.model.pod_use import ClaimInUse, PodInUse
from casaba.net.pod_resources import pod_resources_server
from casaba.node.budgets import ensure_budget
from casaba.policy.container_mounts import PodNames
from casaba.policy.usage_metrics import usage_families
from casaba.services.node_agent.usage import UsageReader
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import NodeAgentSettings
from casaba.wire import _region_layout as layout
from tests.unit.node.test_gpu_processes import add_process
from tests.unit.policy.usages import budget
from tests.unit.values import A10, CLAIM_UID, one_claim, one_share

MOUNTS = """\
1 0 8:1 /var/lib/kubelet/pods/{pod}/containers/c/0a1b2c3d /dev/termination-log rw - ext4 /dev/x rw
2 1 0:25 /x /run/casaba/claims/{claim}/{request}/policy ro - tmpfs tmpfs rw
"""
POD_UIDS = ("11111111-0000-0000-0000-000000000001", "11111111-0000-0000-0000-000000000002")


@dataclass
class Node:
    """A node without a driver, with the claims, pods and processes that a test gives it."""

    folder: Path
    claims: tuple[AllocatedClaim, ...] = ()
    pods: list[PodInUse] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "proc").mkdir()
        self.settings = NodeAgentSettings(
            node_name="node-1",
            paths=HostPaths(run_dir=self.folder / "run", kubelet_dir=self.folder / "kubelet"),
            driver_root=self.folder / "no-driver",
            proc_root=self.folder / "proc",
        )

    def reader(self) -> UsageReader:
        return UsageReader(self.settings, lambda: self.claims, lambda: (A10,), self._names)

    def prepare(self, *requests: str) -> None:
        """Let the node have a claim with these requests."""
        self.claims = (one_claim(*(one_share(request=one) for one in requests)),)
        for request in requests:
            ensure_budget(self.budget(request), budget().policy)

    def budget(self, request: str = "gpu") -> Path:
        return self.settings.paths.claims_dir / CLAIM_UID / request

    async def _names(self, claim: AllocatedClaim) -> PodNames:
        self.asked.append(claim.name)
        return dict(zip(POD_UIDS, ("p1", "p2"), strict=True))


@pytest.fixture
async def node(short_folder: Path) -> AsyncIterator[Node]:
    """A node whose kubelet tells its pods."""
    made = Node(short_folder)
    async with pod_resources_server(made.settings.pod_resources_socket, lambda: made.pods):
        yield made


def use_card(region: Path, busy_ns: int) -> None:
    """Let the budget have used the card so long."""
    at = layout.REGION_FILE_CARDS + layout.REGION_CARD_COMPUTE[0] + 8 * layout.COMPUTE_BUSY
    with region.open("r+b") as file:
        file.seek(at)
        file.write(struct.pack("<Q", busy_ns))


def told(use: NodeUse, name: str) -> list[float]:
    """The values of one family."""
    (family,) = [one for one in usage_families(use) if one.name == name]
    return [value for _, value in family.samples]


@pytest.mark.parametrize("name", ["policy", "region"])
async def test_a_file_that_cant_be_read_once_is_no_reset(node: Node, name: str) -> None:
    node.prepare("gpu")
    reader = node.reader()
    use_card(node.budget() / "region", 5_000_000_000)
    assert told(await reader.read(), "casaba_gpu_seconds") == [5]
    path = node.budget() / name
    path.rename(path.with_suffix(".aside"))
    path.symlink_to(path.with_suffix(".aside"))  # which nobody follows
    missing = await reader.read()
    for counter in ("casaba_gpu_seconds", "casaba_refusals", "casaba_launches"):
        assert told(missing, counter) == []
    assert len(told(missing, "casaba_slice_memory_limit_bytes")) == 1
    path.unlink()
    assert told(await reader.read(), "casaba_gpu_seconds") == []
    path.with_suffix(".aside").rename(path)
    assert told(await reader.read(), "casaba_gpu_seconds") == [5]


async def test_a_claim_that_is_about_to_be_prepared_has_limits_and_zeros(node: Node) -> None:
    node.claims = (one_claim(one_share()),)
    use = await node.reader().read()
    assert told(use, "casaba_gpu_seconds") == [0]
    assert len(told(use, "casaba_slice_memory_limit_bytes")) == 1


async def test_the_claims_pods_are_asked_for_where_several_share_it(node: Node) -> None:
    node.prepare("a", "b")
    uses = (ClaimInUse(namespace="default", name="claim", devices=()),)
    for pid, (name, uid, request) in enumerate(zip(("p1", "p2"), POD_UIDS, "ab", strict=True), 40):
        mounts = MOUNTS.format(pod=uid, claim=CLAIM_UID, request=request)
        add_process(node.settings.proc_root, pid, mounts, inner=1)
        node.pods.append(PodInUse(namespace="default", name=name, containers=(("c", uses),)))
    reader = node.reader()
    await reader.read()
    use = await reader.read()
    users = {one.request: [user.pod for user in one.users] for one in use.slices}
    assert users == {"a": ["p1"], "b": ["p2"]}
    await reader.read()
    assert node.asked == ["claim"]


async def test_a_driver_that_is_missing_is_told_of_each_card(node: Node) -> None:
    use = await node.reader().read()
    assert [one.error is not None for one in use.readings.values()] == [True]
    assert told(use, "casaba_card_healthy") == [0]
