"""Claims and pods on a node, put there as a scheduler would, and what becomes of them."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from casaba.kube import EVENTS, PODS, RESOURCE_CLAIMS, KubeClient, NotFound

LIMIT_S = 45.0
POLL_S = 0.03
MOST_USERS = 256
WAIT = "trap 'exit 0' TERM; sleep 1000000 & wait"
"""A script that goes on until it is asked to end: the first process of a container gets no
signal that it does not handle."""
IMAGE = "registry.example/gpushare-sample:benchmark"

_NOT_YET_KNOWN = "no relationship found between node"

_PODS = PODS.decoded_as(dict)
_CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)
_EVENTS = EVENTS.decoded_as(dict)

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """One node's, in a namespace of their own; claims are of one driver."""

    client: KubeClient
    node: str
    namespace: str
    driver: str
    numbers: Iterator[int] = field(init=False, default_factory=lambda: itertools.count(1))
    """For names."""
    _bound: list[Mapping[str, Any]] = field(init=False, default_factory=list)
    _helped: set[str] = field(init=False, default_factory=set)

    async def add_claim(
        self, *results: Mapping[str, Any], allocated: bool = True, name: str = ""
    ) -> Object:
        """A claim, allocated as a scheduler would; by default one device for request `gpu`."""
        name = name or f"claim-{next(self.numbers)}"
        told = [self.result(**one) for one in results or ({},)]
        spec = {"devices": {"requests": _requests(told)}}
        body = {"metadata": {"name": name}, "spec": spec}
        claim: Object = await self.client.create(_CLAIMS, body, namespace=self.namespace)
        if allocated:
            await self.allocate(claim, told)
        return claim

    async def allocate(self, claim: Mapping[str, Any], results: Sequence[Object]) -> None:
        """Write the allocation of a claim."""
        await self._patch_claim(claim, {"allocation": {"devices": {"results": list(results)}}})

    async def delete_claim(self, claim: Mapping[str, Any]) -> None:
        """Delete a claim; nothing holds it."""
        await self.client.delete(_CLAIMS, claim["metadata"]["name"], namespace=self.namespace)

    def result(self, **changes: Any) -> Object:
        """One allocated device."""
        given = {"request": "gpu", "driver": self.driver, "pool": self.node, "device": "gpu-0"}
        return {**given, **changes}

    async def reserve(self, claim: Mapping[str, Any], pod: Mapping[str, Any]) -> None:
        """Let a pod use a claim, beside those that do already."""
        name = claim["metadata"]["name"]
        found = await self.client.get(_CLAIMS, name, namespace=self.namespace)
        users = found.get("status", {}).get("reservedFor") or []
        metadata = pod["metadata"]
        user = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        await self._patch_claim(claim, {"reservedFor": [*users, user]})

    async def reserve_for_others(self, claim: Mapping[str, Any]) -> None:
        """Leave no room in a claim's reservations, so that no controller adds one."""
        others = [
            {"apiGroup": "example.com", "resource": "things", "name": str(one), "uid": str(one)}
            for one in range(MOST_USERS)
        ]
        await self._patch_claim(claim, {"reservedFor": others})

    async def _patch_claim(self, claim: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        name = claim["metadata"]["name"]
        patch = {"status": status}
        await self.client.patch(
            _CLAIMS, name, patch, namespace=self.namespace, subresource="status"
        )

    async def run_pod(
        self,
        *containers: Mapping[str, Any],
        claims: Sequence[Mapping[str, Any]] = (),
        reserved: bool = True,
        **spec: Any,
    ) -> Object:
        """A pod with claims, bound to the node once they are reserved for it."""
        pod = await self.create_pod(*containers, claims=claims, **spec)
        for claim in claims if reserved else ():
            await self.reserve(claim, pod)
        await self.bind(pod)
        return pod

    async def create_pod(
        self,
        *containers: Mapping[str, Any],
        claims: Sequence[Mapping[str, Any]] = (),
        **spec: Any,
    ) -> Object:
        """A pod that no scheduler looks at; it knows its claims as c0, c1, …"""
        entries = [
            {"name": f"c{number}", "resourceClaimName": claim["metadata"]["name"]}
            for number, claim in enumerate(claims)
        ]
        body = {
            "metadata": {"name": f"pod-{next(self.numbers)}"},
            "spec": {
                "schedulerName": "nobody",
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False,
                "containers": list(containers) or [shell(WAIT, "c0")],
                "resourceClaims": entries,
                **spec,
            },
        }
        pod: Object = await self.client.create(_PODS, body, namespace=self.namespace)
        return pod

    async def bind(self, pod: Mapping[str, Any]) -> None:
        """Put a pod on the node."""
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        await self.client.create(
            _PODS,
            {**body, "target": target},
            namespace=self.namespace,
            name=name,
            subresource="binding",
        )
        self._bound.append(pod)

    async def nudge(self, pod: Mapping[str, Any]) -> None:
        """Change a pod: its kubelet tries at once what it would try again a minute later."""
        note = {"tests.casaba.dev/nudge": str(next(self.numbers))}
        name = pod["metadata"]["name"]
        patch = {"metadata": {"annotations": note}}
        with suppress(NotFound):
            await self.client.patch(_PODS, name, patch, namespace=self.namespace)

    async def pod(self, pod: Mapping[str, Any]) -> Object | None:
        """The pod as it is now; None if it, not just one of its name, is gone."""
        metadata = pod["metadata"]
        try:
            found: Object = await self.client.get(_PODS, metadata["name"], namespace=self.namespace)
        except NotFound:
            return None
        return found if found["metadata"]["uid"] == metadata["uid"] else None

    async def in_phase(self, pod: Mapping[str, Any], phase: str) -> Object:
        """The pod, once it is in a phase."""

        async def there() -> Object | None:
            await self._help(pod)
            found = await self.pod(pod)
            return found if found and found["status"].get("phase") == phase else None

        try:
            found: Object = await self.until(f"a pod is {phase}", there)
        except AssertionError as error:
            status = json.dumps((await self.pod(pod) or {}).get("status"))
            raise AssertionError(f"{error}: {status} {await self.events(pod)}") from None
        return found

    async def container_waits(self, pod: Mapping[str, Any], reason: str) -> str:
        """The message of the first container, once it waits for a reason."""

        async def there() -> str | None:
            found = await self.pod(pod) or {}
            (one, *_) = found.get("status", {}).get("containerStatuses") or [{}]
            waiting = one.get("state", {}).get("waiting", {})
            return str(waiting.get("message")) if waiting.get("reason") == reason else None

        return str(await self.until(f"a container waits: {reason}", there))

    async def event(self, pod: Mapping[str, Any], reason: str, part: str = "") -> str:
        """The message of a pod's event of a reason, once there is one with that part."""

        async def there() -> str | None:
            await self._help(pod)
            told = await self.events(pod)
            return next((text for kind, text in told if kind == reason and part in text), None)

        try:
            return str(await self.until(f"an event {reason} with {part!r}", there))
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.events(pod)}") from None

    async def events(self, pod: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Reason and message of a pod's events, but for those of the authorizer's delay."""
        told = await self._all_events(pod)
        return [(reason, text) for reason, text in told if _NOT_YET_KNOWN not in text]

    async def _all_events(self, pod: Mapping[str, Any]) -> list[tuple[str, str]]:
        selector = f"involvedObject.uid={pod['metadata']['uid']}"
        listed = await self.client.list(_EVENTS, namespace=self.namespace, field_selector=selector)
        return [(item["reason"], item["message"]) for item in listed.items]

    async def help_pods(self) -> None:
        """Help all pods of the test over the authorizer's delay."""
        for pod in self._bound:
            await self._help(pod)

    async def _help(self, pod: Mapping[str, Any]) -> None:
        """A real API server may hear of a binding after the kubelet does, and then refuses it
        the claim; the kubelet would try again a minute later."""
        uid = pod["metadata"]["uid"]
        told = [] if uid in self._helped else await self._all_events(pod)
        if any(_NOT_YET_KNOWN in text for _, text in told):
            self._helped.add(uid)
            await self.nudge(pod)

    async def log(self, pod: Mapping[str, Any], container: str) -> list[str]:
        """The lines of a container's log."""
        content = await self.client.read(
            PODS,
            pod["metadata"]["name"],
            namespace=self.namespace,
            subresource="log",
            query={"container": container},
        )
        return content.decode().splitlines()

    async def delete(self, pod: Mapping[str, Any], grace_period_s: int | None = 1) -> None:
        """Ask for a pod's deletion."""
        name = pod["metadata"]["name"]
        with suppress(NotFound):
            await self.client.delete(
                _PODS, name, namespace=self.namespace, grace_period_s=grace_period_s
            )

    async def gone(self, pod: Mapping[str, Any]) -> None:
        """Until a pod is gone."""

        async def is_gone() -> bool:
            return await self.pod(pod) is None

        await self.until("the pod is gone", is_gone)

    async def delete_pods(self) -> None:
        """Delete the test's pods and wait until they are gone."""
        listed = await self.client.list(_PODS, namespace=self.namespace)
        for pod in listed.items:
            await self.delete(pod)
            if not pod["spec"].get("nodeName"):
                await self.delete(pod, grace_period_s=0)
        for pod in listed.items:
            await self.gone(pod)

    async def until_true(self, what: str, condition: Callable[[], Any]) -> None:
        """Wait for something of this process."""

        async def holds() -> Any:
            return condition()

        await self.until(what, holds)

    async def until(self, what: str, condition: Callable[[], Awaitable[Any]]) -> Any:
        """The first true value of a condition, asked for again and again."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while not (found := await condition()):  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise AssertionError(f"not within {LIMIT_S} s: {what}") from None
        return found


def shell(script: str, *claims: str, name: str = "main", **fields: Any) -> Object:
    """A container that runs a shell script, with claims as `entry` or `entry/request`."""
    uses = [dict(zip(("name", "request"), text.split("/"), strict=False)) for text in claims]
    return {
        "name": name,
        "image": IMAGE,
        "command": ["sh", "-c", script],
        "resources": {"claims": uses},
        **fields,
    }


def _requests(results: Sequence[Mapping[str, Any]]) -> list[Object]:
    """The requests that these results answer; `a/b` is one of the alternatives of `a`."""
    alternatives: dict[str, list[str]] = {}
    for result in results:
        name, _, alternative = result["request"].partition("/")
        alternatives.setdefault(name, []).extend([alternative] if alternative else [])
    wanted = {"deviceClassName": "conformance.example"}
    return [
        {"name": name, "firstAvailable": [{"name": one, **wanted} for one in ones]}
        if ones
        else {"name": name, "exactly": wanted}
        for name, ones in alternatives.items()
    ]
