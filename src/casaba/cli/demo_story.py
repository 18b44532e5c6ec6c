"""The scenario from end to end on a simulated cluster: every step, and what changed by it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from casaba.cli.demo_objects import (
    NAMESPACE,
    Object,
    apply_file,
    delete_file,
    until,
    until_gone,
)
from casaba.cli.demo_shares import Reached, Tenant, shares_table, watch_shares
from casaba.cli.demo_telling import Teller
from casaba.errors import CasabaError
from casaba.kube.resources import EVENTS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from casaba.model.ids import claim_uid
from casaba.node.usage import read_budgets
from casaba.settings.host_paths import DRIVER_NAME
from casaba.simulation.cluster import SimulatedCluster
from casaba.simulation.kubelet.node_object import ISOLATION_ANNOTATION
from casaba.wire.cdi import claim_spec_file

NODE = "edge-gpu-a10"

INTRODUCTION = (
    "A cluster in a box: API server, scheduler, kubelet and card are simulated; the node agent "
    "and the guard, which holds tenants to their share, are the real ones."
)
_ISOLATION = {
    "namespace": "processes of this machine, each in a mount namespace of its own",
    "environment": "processes of this machine; without root, limits reach them by LD_PRELOAD",
}

SHARES_S = 6.0
"""How long the shares are watched, in seconds; half of it in a hurry."""

POLL_S = 0.1
POLLS = 100

CLAIM, POD = "gpu-half-claim", "gpu-test-dra"
SECOND_CLAIM, SECOND_POD = "gpu-quarter-claim", "gpu-second-tenant"
THIRD_CLAIM, THIRD_POD = "gpu-too-much-claim", "gpu-third-tenant"

SCENARIO = ("scenario/claim.yaml", "scenario/pod-native.yaml")
SECOND = "demo/second-tenant.yaml"
THIRD = "demo/too-much.yaml"


@dataclass(frozen=True)
class Story:
    """The demo's steps on a cluster that runs, with its node agent."""

    cluster: SimulatedCluster
    teller: Teller

    async def tell(self) -> None:
        """All steps in their order; raises CasabaError at the first that does not come true."""
        self.teller.show(INTRODUCTION)
        await self._node_joins()
        await self._card_is_published()
        await self._claim_is_allocated()
        await self._tenant_looks()
        refusal = await self._second_tenant_is_limited()
        await self._third_tenant_waits()
        reached = await self._time_is_shared()
        await self._everything_is_given_back()
        self._summary(refusal, reached)

    async def _node_joins(self) -> None:
        self.teller.title("A node with a virtual NVIDIA A10 joins a simulated cluster.")
        node = await until(self.cluster.client, NODES, _is_ready, f"{NODE} is Ready", name=NODE)
        labels = node["metadata"]["labels"]
        self.teller.changed(
            f"node/{NODE}",
            f"Ready, gpu={labels['gpu']}, nodepool {labels['apps.openyurt.io/nodepool']}",
        )
        isolation = node["metadata"]["annotations"][ISOLATION_ANNOTATION]
        self.teller.changed("containers", _ISOLATION[isolation])
        await self.teller.step("node", name=NODE, ready=True)

    async def _card_is_published(self) -> None:
        self.teller.title("The node agent finds the card and offers shares of it.")
        what = "the node agent has published its ResourceSlice"
        slice_ = await until(self.cluster.client, RESOURCE_SLICES, _offers, what)
        name = slice_["metadata"]["name"]
        (device,) = slice_["spec"]["devices"]
        amounts = {key: amount["value"] for key, amount in device["capacity"].items()}
        product = device["attributes"]["productName"]["string"]
        self.teller.changed(
            f"resourceslice/{name}", f"{device['name']}: {product}, {told(amounts)}"
        )
        await self.teller.step("slice", name=name, device=device["name"], capacity=amounts)

    async def _claim_is_allocated(self) -> None:
        self.teller.title("A user asks for one card, 50 % of its compute, 10 GiB.")
        await self._apply(*SCENARIO)
        result = await self._allocated(CLAIM)
        consumed = result["consumedCapacity"]
        self.teller.changed(
            f"resourceclaim/{CLAIM}",
            f"allocated: {told(consumed)} of {result['device']} on {result['pool']}",
        )
        await self.teller.step(
            "claim", name=CLAIM, device=result["device"], consumed=dict(consumed)
        )

    async def _tenant_looks(self) -> None:
        self.teller.title("The agent prepares the claim, the tenant starts and looks at its card.")
        await self._running(POD)
        for device in await self._prepared(CLAIM):
            self.teller.changed("CDI device", device)
        self.teller.changed(f"pod/{POD}", f"Running on {NODE}")
        self.teller.command(f"kubectl logs {POD}")
        said = await self._log(POD, "", until_seen="working set")
        self.teller.output(_up_to_last_table_line(said))
        shown = "0MiB / 10240MiB"
        await self.teller.step("look", shown=shown if shown in said else None)

    async def _second_tenant_is_limited(self) -> str:
        self.teller.title("A second tenant takes memory until it is refused; it may have 4 GiB.")
        await self._apply(SECOND)
        await self._running(SECOND_POD)
        self.teller.command(f"kubectl logs {SECOND_POD} -c memory-limit")
        said = await self._log(SECOND_POD, "memory-limit", until_seen="refused")
        self.teller.output("".join(f"{line}\n" for line in said.splitlines() if "MiB" in line))
        allocated = 1024 * said.count(" allocated")
        refusal = said.splitlines()[-1].rpartition(": ")[2]
        await self.teller.step("limit", allocated_mib=allocated, refusal=refusal)
        return f"{allocated} MiB allocated and the next byte refused ({refusal})"

    async def _third_tenant_waits(self) -> None:
        self.teller.title("A third one asks for 12 GiB. That does not fit any more: it waits.")
        await self._apply(THIRD)
        what = f"the scheduler has said why {THIRD_POD} waits"
        event = await until(self.cluster.client, EVENTS, _tells_why, what)
        self.teller.command(f"kubectl events --for pod/{THIRD_POD}")
        words, _, why = event["message"].partition(" Why: ")
        self.teller.changed(f"pod/{THIRD_POD}", f"Pending: {words}")
        self.teller.changed("why", why)
        await self.teller.step("waits", pod=THIRD_POD, message=words, why=why)

    async def _time_is_shared(self) -> Sequence[Reached]:
        self.teller.title("Both tenants keep the card busy; they may have 50 % and 25 % of it.")
        tenants = (
            Tenant(name="tenant A", cores_percent=50, pid=await self._pid(CLAIM)),
            Tenant(name="tenant B", cores_percent=25, pid=await self._pid(SECOND_CLAIM)),
        )
        (host,) = self.cluster.nodes
        reached = await watch_shares(
            tenants,
            SHARES_S / (2 if self.teller.fast else 1),
            self.teller.live_console,
            host.driver,
            host.environment(),
        )
        self.teller.show(shares_table(reached))
        await self.teller.step("shares", tenants=[one.told() for one in reached])
        return reached

    async def _everything_is_given_back(self) -> None:
        self.teller.title("The pods are deleted; everything of theirs goes with them.")
        files = (THIRD, SECOND, *reversed(SCENARIO))
        self.teller.command(f"kubectl delete {_flags(files)}")
        for name in files:
            await delete_file(self.cluster.client, name)
        await until_gone(self.cluster.client, PODS)
        await until_gone(self.cluster.client, RESOURCE_CLAIMS)
        (host,) = self.cluster.nodes
        left = sorted(path.name for path in host.paths.claims_dir.iterdir())
        self.teller.changed("pods, claims, files on the host", f"{len(left)} left")
        await self.teller.step("end", left=left)

    def _summary(self, refusal: str, reached: Sequence[Reached]) -> None:
        shares = ", ".join(f"{one.share:.1f} % of {one.tenant.cores_percent} %" for one in reached)
        self.teller.show(f"\n[bold]The slices held:[/bold] {refusal}; of the card's time {shares}.")

    async def _apply(self, *names: str) -> None:
        self.teller.command(f"kubectl apply {_flags(names)}")
        for name in names:
            await apply_file(self.cluster.client, name)

    async def _allocated(self, claim: str) -> Any:
        what = f"the scheduler has allocated {claim}"
        found = await until(self.cluster.client, RESOURCE_CLAIMS, _is_allocated, what, name=claim)
        return found["status"]["allocation"]["devices"]["results"][0]

    async def _prepared(self, claim: str) -> list[str]:
        """What the agent made for the container runtime, by the names of its CDI spec."""
        uid = (
            await self.cluster.client.get(RESOURCE_CLAIMS, claim, namespace=NAMESPACE)
        ).metadata.uid
        (host,) = self.cluster.nodes
        spec = json.loads((host.paths.cdi_dir / claim_spec_file(claim_uid(uid))).read_bytes())
        return [f"{spec['kind']}={device['name']}" for device in spec["devices"]]

    async def _running(self, pod: str) -> Object:
        return await until(self.cluster.client, PODS, _is_running, f"{pod} runs", name=pod)

    async def _log(self, pod: str, container: str, *, until_seen: str) -> str:
        """What a container printed so far, once it has printed something."""
        query = {"container": container} if container else {}
        for _ in range(POLLS):
            said = await self.cluster.client.read(
                PODS, pod, namespace=NAMESPACE, subresource="log", query=query
            )
            text = said.decode(errors="replace")
            if until_seen in text:
                return text
            await asyncio.sleep(POLL_S)
        raise CasabaError(f"the demo waited in vain for {until_seen!r} in the log of {pod}: {text}")

    async def _pid(self, claim: str) -> int:
        """The process that uses a claim, as its guard tells it."""
        object_ = await self.cluster.client.get(RESOURCE_CLAIMS, claim, namespace=NAMESPACE)
        (host,) = self.cluster.nodes
        for _ in range(POLLS):
            for budget in read_budgets(host.paths.claims_dir):
                if budget.claim == object_.metadata.uid and budget.processes:
                    return budget.processes[0].pid
            await asyncio.sleep(POLL_S)
        raise CasabaError(f"the demo waited in vain for a process that uses claim {claim}")


def told(capacity: dict[str, str]) -> str:
    """`cores 50, memory 10Gi`."""
    return ", ".join(f"{key} {value}" for key, value in sorted(capacity.items()))


def _flags(names: Sequence[str]) -> str:
    """Files of the source tree, as kubectl is given them."""
    return " ".join(f"-f examples/{name}" for name in names)


def _up_to_last_table_line(text: str) -> str:
    return text[: text.rindex("-+\n") + 3]


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _offers(slice_: Object) -> bool:
    return slice_["spec"]["driver"] == DRIVER_NAME and bool(slice_["spec"].get("devices"))


def _is_allocated(claim: Object) -> bool:
    return "allocation" in claim.get("status", {})


def _is_running(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")


def _tells_why(event: Object) -> bool:
    about = event["involvedObject"]["name"]
    return bool(about == THIRD_POD and event["reason"] == "FailedScheduling")
