"""Prepares the claims of a pod before its containers start, unprepares them when they are gone.

Follows the kubelet's DRA code step by step: everything is checked before anything is remembered,
so that a pod whose driver never came can be deleted. Source: KEP-4381.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from casaba.aiokit.locks import KeyedLocks
from casaba.kube import RESOURCE_CLAIMS, KubeClient, KubeError, Refused
from casaba.net.dra_client import AnsweredDevice, PluginCallFailed, PrepareAnswer
from casaba.net.dra_sockets import ClaimReference
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.kubelet import claim_rules as rules
from casaba.simulation.kubelet.claim_rules import ClaimsNotReady, Object, PodClaim
from casaba.simulation.kubelet.claim_states import ClaimKey, ClaimState, ClaimStates
from casaba.simulation.kubelet.plugins import DriverNotRegistered, Plugin, Plugins
from casaba.simulation.kubelet.registration_rules import knows_share_ids

_CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)

_Batch = dict[Plugin, list[ClaimReference]]


@dataclass(frozen=True, kw_only=True)
class ClaimUse:
    """A container's use of a prepared claim; an empty request means all of it."""

    entry: str
    """Name of the entry in the pod's resourceClaims."""
    request: str
    claim: ClaimState

    def devices(self) -> Iterator[tuple[str, AnsweredDevice]]:
        """(driver, device) for all that the container gets."""
        return rules.devices_for(self.claim, self.request)


class PodClaims:
    """The claims of the pods of this node."""

    def __init__(
        self,
        client: KubeClient,
        plugins: Plugins,
        states: ClaimStates,
        settings: SimulatedKubeletSettings,
    ) -> None:
        self._client = client
        self._plugins = plugins
        self._states = states
        self._locks = KeyedLocks[ClaimKey]()
        self._timeout_s = settings.plugin_timeout_s
        self._keeps_share_ids = knows_share_ids(settings.version)

    async def prepare(self, pod: Object) -> None:
        """All claims of a pod, with one call for each driver; raises ClaimsNotReady.

        Two pods that come at once both ask for the claim that they share, as in the kubelet.
        Also raises HostError when the checkpoint can't be written. May be tried again, also if
        cancelled.
        """
        claims = [await self._read(pod, used) for used in rules.pod_claims(pod)]
        drivers = {driver for claim in claims for driver in rules.drivers_of(claim)}
        plugins = {driver: self._plugin(driver) for driver in drivers}
        async with self._locked(map(_key, claims)):
            batches = self._remember(pod["metadata"]["uid"], claims, plugins)
        for plugin, references in batches.items():
            answers = await self._call_prepare(plugin, references)
            self._note_answers(plugin.driver, references, answers)
        self._mark_prepared(map(_key, claims))

    async def unprepare(self, pod_uid: str) -> None:
        """Give back what a pod used; a claim that others use too stays. Raises ClaimsNotReady.

        Also raises HostError. May be tried again, also if cancelled.
        """
        async with self._locked(state.key for state in self._states.of_pod(pod_uid)):
            await self._unprepare(pod_uid)

    async def _unprepare(self, pod_uid: str) -> None:
        batches: dict[str, list[ClaimReference]] = defaultdict(list)
        last_used = []
        for state in self._states.of_pod(pod_uid):
            if len(state.pods) > 1:
                self._states.put(replace(state, pods=state.pods - {pod_uid}))
                continue
            # Whatever the driver answers: the next pod must have the claim prepared anew.
            self._states.put(replace(state, prepared=False))
            last_used.append(state)
            for driver in state.drivers:
                batches[driver].append(_reference(state))
        for driver, references in batches.items():
            await self._call_unprepare(driver, references)
        for state in last_used:
            self._states.drop(state.key)
        self._states.save()

    @asynccontextmanager
    async def _locked(self, keys: Iterable[ClaimKey]) -> AsyncIterator[None]:
        """A claim that is being given back is not taken meanwhile."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self._locks.of(key))
            yield

    async def unprepare_all_but(self, pod_uids: Iterable[str]) -> None:
        """Unprepare for pods that are not among these; raises what `unprepare` raises, last."""
        kept = set(pod_uids)
        gone = {uid for state in self._states for uid in state.pods} - kept
        failure: ClaimsNotReady | None = None
        for uid in sorted(gone):
            try:
                await self.unprepare(uid)
            except ClaimsNotReady as error:
                failure = error
        if failure is not None:
            raise failure

    def uses(self, pod: Object, container: Object) -> list[ClaimUse]:
        """The prepared claims that a container uses."""
        by_entry = rules.claim_names(pod)
        namespace = pod["metadata"]["namespace"]
        found = []
        for use in (container.get("resources") or {}).get("claims") or ():
            state = self._states.get((namespace, by_entry.get(use["name"], "")))
            if state is not None and state.prepared:
                request = use.get("request", "")
                found.append(ClaimUse(entry=use["name"], request=request, claim=state))
        return found

    async def _read(self, pod: Object, used: PodClaim) -> dict[str, Any]:
        try:
            claim: dict[str, Any] = await self._client.get(
                _CLAIMS, used.claim, namespace=pod["metadata"]["namespace"]
            )
        except Refused as error:
            words = error.status.message or error
            raise ClaimsNotReady(f"fetch ResourceClaim {used.claim}: {words}") from error
        except KubeError as error:
            raise ClaimsNotReady(f"fetch ResourceClaim {used.claim}: {error}") from error
        rules.check_claim(pod, used, claim)
        return claim

    def _plugin(self, driver: str) -> Plugin:
        try:
            return self._plugins.plugin(driver)
        except DriverNotRegistered as error:
            raise ClaimsNotReady(str(error)) from error

    def _remember(
        self, pod_uid: str, claims: Sequence[Object], plugins: Mapping[str, Plugin]
    ) -> _Batch:
        """Note the pod with its claims; what is still to be prepared, by plugin."""
        for claim in claims:
            if known := self._states.get(_key(claim)):
                rules.check_same_claim(known, claim)
        batches: _Batch = defaultdict(list)
        for claim in claims:
            state = self._states.get(_key(claim)) or _new_state(claim)
            state = replace(state, pods=state.pods | {pod_uid})
            self._states.put(state)
            if not state.prepared:
                for driver in state.drivers:
                    batches[plugins[driver]].append(_reference(state))
        self._states.save()
        return batches

    async def _call_prepare(
        self, plugin: Plugin, references: list[ClaimReference]
    ) -> Mapping[str, PrepareAnswer]:
        try:
            answers = await plugin.connection.prepare(references, self._timeout_s)
        except PluginCallFailed as error:
            raise ClaimsNotReady(f"NodePrepareResources: {error}") from error
        errors = {uid: answer.error for uid, answer in answers.items()}
        rules.check_answer("NodePrepareResources", references, errors)
        return answers

    def _note_answers(
        self,
        driver: str,
        references: Iterable[ClaimReference],
        answers: Mapping[str, PrepareAnswer],
    ) -> None:
        for reference in references:
            devices = answers[reference.uid].devices
            if not self._keeps_share_ids:
                devices = tuple(replace(device, share_id=None) for device in devices)
            state = self._states.get((reference.namespace, reference.name))
            if state is not None:
                drivers = {**state.drivers, driver: devices}
                self._states.put(replace(state, drivers=drivers))

    def _mark_prepared(self, keys: Iterable[ClaimKey]) -> None:
        for key in keys:
            if state := self._states.get(key):
                self._states.put(replace(state, prepared=True))
        self._states.save()

    async def _call_unprepare(self, driver: str, references: list[ClaimReference]) -> None:
        try:
            connection = self._plugins.plugin(driver).connection
            errors = await connection.unprepare(references, self._timeout_s)
        except DriverNotRegistered as error:
            raise ClaimsNotReady(str(error)) from error
        except PluginCallFailed as error:
            raise ClaimsNotReady(f"NodeUnprepareResources: {error}") from error
        rules.check_answer("NodeUnprepareResources", references, errors)


def _key(claim: Object) -> ClaimKey:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]


def _new_state(claim: Object) -> ClaimState:
    namespace, name = _key(claim)
    return ClaimState(
        namespace=namespace,
        name=name,
        uid=claim["metadata"]["uid"],
        pods=frozenset(),
        drivers=dict.fromkeys(rules.drivers_of(claim), ()),
    )


def _reference(state: ClaimState) -> ClaimReference:
    return ClaimReference(namespace=state.namespace, name=state.name, uid=state.uid)
