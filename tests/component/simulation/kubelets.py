"""A simulated node on a simulated API server, and what a scheduler would have done to its pods."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from casaba.kube import EVENTS, NODES, PODS, RESOURCE_CLAIMS, KubeClient, NotFound
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.kubelet import SimulatedKubelet
from tests.component.simulation.plugins import DRIVER, ScriptedPlugin

NODE = "node-1"
LIMIT_S = 20.0

_PODS = PODS.decoded_as(dict)
_CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)
_EVENTS = EVENTS.decoded_as(dict)
_NODES = NODES.decoded_as(dict)


async def until(
    what: str, condition: Callable[[], Awaitable[Any]], limit_s: float = LIMIT_S
) -> Any:
    """The first true value of a condition, asked for again and again."""
    try:
        async with asyncio.timeout(limit_s):
            while not (found := await condition()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {limit_s} s: {what}") from None
    return found


@dataclass
class NodeUnderTest:
    """One node; `running` runs its kubelet."""

    server: SimulatedApiServer
    client: KubeClient
    settings: SimulatedKubeletSettings
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @asynccontextmanager
    async def running(self, **changes: Any) -> AsyncIterator[None]:
        """The kubelet until the block ends; the node is registered when it begins."""
        settings = replace(self.settings, **changes)
        kubelet = SimulatedKubelet(self.client, self.server.authority, settings)
        task = asyncio.create_task(kubelet.run())
        try:
            await until("the node is ready", lambda: self._is_ready(task))
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception():
                raise task.exception()  # type: ignore[misc]

    async def _is_ready(self, task: "asyncio.Task[None]") -> bool:
        if task.done():
            task.result()
        node = await self.node()
        return bool(node and node.get("status", {}).get("conditions"))

    async def node(self) -> dict[str, Any] | None:
        """The Node object."""
        try:
            return await self.client.get(_NODES, NODE)
        except NotFound:
            return None

    def plugin(self, **changes: Any) -> ScriptedPlugin:
        """A plugin of this node."""
        folder = self.settings.root / "plugins" / changes.get("driver", DRIVER)
        fields = {"folder": folder, "registry": self.settings.registry_dir, **changes}
        return ScriptedPlugin(**fields)

    async def run_pod(
        self,
        *containers: Mapping[str, Any],
        claims: Sequence[str] = (),
        name: str = "",
        **spec: Any,
    ) -> dict[str, Any]:
        """Create a pod, reserve its claims and bind it to this node, as a scheduler does."""
        body = {
            "metadata": {"name": name or f"pod-{next(self._numbers)}"},
            "spec": {
                "schedulerName": "nobody",
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": list(containers),
                "resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims],
                **spec,
            },
        }
        pod = await self.client.create(_PODS, body, namespace="default")
        for claim in claims:
            await self.reserve(claim, pod)
        await self._bind(pod["metadata"]["name"])
        return pod

    async def _bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        await self.client.create(
            _PODS,
            {**body, "target": target},
            namespace="default",
            name=name,
            subresource="binding",
        )

    async def add_claim(
        self, name: str, *results: Mapping[str, Any], driver: str = DRIVER
    ) -> dict[str, Any]:
        """Create an allocated claim."""
        exactly = {"deviceClassName": driver}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        body = {"metadata": {"name": name}, "spec": spec}
        claim = await self.client.create(_CLAIMS, body, namespace="default")
        result = {"request": "gpu", "driver": driver, "pool": NODE, "device": "gpu-0"}
        allocation = {"devices": {"results": list(results) or [result]}}
        await self._patch_claim(name, {"allocation": allocation})
        return claim

    async def reserve(self, claim: str, pod: Mapping[str, Any]) -> None:
        """Let a pod use a claim, beside those that do already."""
        found = await self.client.get(_CLAIMS, claim, namespace="default")
        users = found.get("status", {}).get("reservedFor") or []
        metadata = pod["metadata"]
        user = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        await self._patch_claim(claim, {"reservedFor": [*users, user]})

    async def _patch_claim(self, name: str, status: Mapping[str, Any]) -> None:
        await self.client.patch(
            _CLAIMS, name, {"status": status}, namespace="default", subresource="status"
        )

    async def pod(self, name: str) -> dict[str, Any] | None:
        """A pod as the server has it."""
        try:
            return await self.client.get(_PODS, name, namespace="default")
        except NotFound:
            return None

    async def pod_in_phase(self, pod: Mapping[str, Any], phase: str) -> dict[str, Any]:
        """The pod, once it is in a phase."""
        name = pod["metadata"]["name"]

        async def there() -> dict[str, Any] | None:
            found = await self.pod(name)
            return found if found and found["status"].get("phase") == phase else None

        try:
            return await until(f"{name} is {phase}", there)  # type: ignore[no-any-return]
        except AssertionError as error:
            status = (await self.pod(name) or {}).get("status")
            raise AssertionError(f"{error}: {status} {await self.messages(pod)}") from None

    async def container_state(self, pod: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """The status of the first container, once it waits for or has ended with a reason."""

        async def there() -> dict[str, Any] | None:
            found = await self.pod(pod["metadata"]["name"])
            (status, *_) = (found or {}).get("status", {}).get("containerStatuses") or [{}]
            states = status.get("state", {}).values()
            return status if any(state.get("reason") == reason for state in states) else None

        return await until(f"a container is {reason}", there)  # type: ignore[no-any-return]

    async def delete(self, pod: Mapping[str, Any], grace_period_s: int | None = None) -> None:
        """Delete a pod and wait until it is gone."""
        name = pod["metadata"]["name"]
        await self.client.delete(_PODS, name, namespace="default", grace_period_s=grace_period_s)

        async def gone() -> bool:
            return await self.pod(name) is None

        await until(f"{name} is gone", gone)

    async def messages(self, pod: Mapping[str, Any]) -> list[str]:
        """`reason: message` of a pod's events, oldest first."""
        selector = f"involvedObject.uid={pod['metadata']['uid']}"
        listed = await self.client.list(_EVENTS, namespace="default", field_selector=selector)
        items = sorted(listed.items, key=lambda item: item["metadata"]["name"])
        return [f"{item['reason']}: {item['message']}" for item in items]

    async def message(self, pod: Mapping[str, Any], beginning: str) -> str:
        """The event of a pod that begins so, once it is there."""

        async def there() -> str | None:
            told = await self.messages(pod)
            return next((text for text in told if text.startswith(beginning)), None)

        return await until(f"an event {beginning!r}", there)  # type: ignore[no-any-return]

    async def logs(self, pod: Mapping[str, Any], **query: str) -> str:
        """The log through the API server."""
        content = await self.client.read(
            PODS, pod["metadata"]["name"], namespace="default", subresource="log", query=query
        )
        return content.decode()


def shell(script: str, *claims: str, name: str = "main", **fields: Any) -> dict[str, Any]:
    """A container that runs a shell script."""
    return {
        "name": name,
        "image": "registry.example/none:1",
        # Kubernetes takes two dollars for one.
        "command": ["sh", "-c", script.replace("$$", "$$$$")],
        "resources": {"claims": [{"name": claim} for claim in claims]},
        **fields,
    }


@asynccontextmanager
async def node_under_test(root: Path, **settings: Any) -> AsyncIterator[NodeUnderTest]:
    """A node whose kubelet does not run yet, on a server of its own."""
    settings = {
        "environment": {},
        "isolation": "environment",
        "plugin_poll_s": 0.02,
        "registration_retry_s": 0.05,
        "lease_renewal_s": 0.5,
        "retry_s": 0.1,
        "reconcile_s": 0.2,
        "wiping_delay_s": 0.2,
        "crash_backoff_s": 0.1,
        "health_retry_s": 0.1,
        "cdi_dirs": (root / "cdi",),
        **settings,
    }
    async with SimulatedApiServer() as server, KubeClient(server.admin_config()) as client:
        made = SimulatedKubeletSettings(node_name=NODE, root=root / "kubelet", **settings)
        yield NodeUnderTest(server=server, client=client, settings=made)
