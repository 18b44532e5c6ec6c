"""Reads what this node's cards and slices do now: regions, NVML, /proc, and the kubelet's pods."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from casaba.aiokit.lone_call import LoneCall, NoAnswer
from casaba.errors import HostError
from casaba.model.card_reading import CardReading
from casaba.model.claim import AllocatedClaim
from casaba.model.gpu import Gpu
from casaba.model.limits import is_cap
from casaba.model.node_use import NodeUse
from casaba.model.pod_use import PodInUse
from casaba.net.pod_resources import list_pods
from casaba.node.nvidia.readings import read_cards
from casaba.policy.container_mounts import PodNames, claims_to_ask
from casaba.services.node_agent.host_use import HostReader, Readings, Seldom
from casaba.settings.node_agent import NodeAgentSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

ASK_APART_S = 10.0
"""How often the API server is asked for the pods of shared claims."""

PodsOfClaim = Callable[[AllocatedClaim], Awaitable[PodNames]]
"""Names by UID of the pods that a claim is reserved for; empty where that is not known now."""


class UsageReader:
    """Makes one reading at a time; what it needs to remember from one to the next it keeps.

    NVML may hang, and so may the host's files. Each has one thread of its own, so that nobody
    else's are taken, and cards that hang are told as such while the rest goes on.
    """

    def __init__(
        self,
        settings: NodeAgentSettings,
        claims: Callable[[], tuple[AllocatedClaim, ...]],
        gpus: Callable[[], tuple[Gpu, ...]],
        pods_of_claim: PodsOfClaim,
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._gpus = gpus
        self._pods_of_claim = pods_of_claim
        self._one_at_a_time = asyncio.Lock()
        self._cards = LoneCall("nvml")
        self._cards_answer = True
        self._files = LoneCall("host-usage")
        self._pods: tuple[PodInUse, ...] = ()
        self._pods_told = True
        self._may_ask = Seldom(ASK_APART_S)
        self._host = HostReader(settings)

    async def read(self) -> NodeUse:
        """A reading; what can't be read is left out of it.

        Raises HostError only while the host's own files are not answered for.
        """
        async with self._one_at_a_time:
            claims, gpus = self._claims(), self._gpus()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask_kubelet())
                readings = group.create_task(self._read_cards(gpus))
            tenancy = await self._ask_host(lambda: self._host.read_tenancy(claims))
            host = await self._ask_host(
                lambda: self._host.observe(claims, tenancy, readings.result())
            )
            await self._ask_pod_names(claims)
            pods, told = self._pods, self._pods_told
            return await self._ask_host(lambda: self._host.use_of(host, claims, gpus, pods, told))

    async def run(self) -> None:
        """Look at use that nobody measures, between the scrapes; never returns."""
        while True:
            try:
                await self._follow()
            except HostError as error:
                log.warning("usage.not_followed", extra={"reason": str(error)})
            except Exception:  # a fault of one look is no reason to end the process
                log.exception("usage.follow_failed")
            await asyncio.sleep(self._settings.usage_follow_s)

    async def _follow(self) -> None:
        """NVML is only asked while a tenant uses its card alone and without a cap."""
        async with self._one_at_a_time:
            claims, gpus = self._claims(), self._gpus()
            if self._host.has_begun and not any(map(_has_uncapped, claims)):
                return
            tenancy = await self._ask_host(lambda: self._host.read_tenancy(claims))
            readings = await self._read_cards(gpus) if tenancy.is_lone else {}
            await self._ask_host(
                lambda: self._host.observe(claims, tenancy, readings, is_told=False)
            )

    async def _ask_kubelet(self) -> None:
        try:
            self._pods = await list_pods(
                self._settings.pod_resources_socket, self._settings.pod_resources_timeout_s
            )
        except HostError as error:
            if self._pods_told:
                log.warning("pods.not_told", extra={"reason": str(error)})
            self._pods_told = False
        else:
            self._pods_told = True

    async def _read_cards(self, gpus: tuple[Gpu, ...]) -> Readings:
        """Cards that don't answer in time say so; while they hang nobody waits for them again."""
        try:
            readings = await self._cards.ask(
                lambda: read_cards(self._settings.driver_root, gpus), self._settings.host_answer_s
            )
        except NoAnswer as error:
            if self._cards_answer:
                log.warning("cards.silent", extra={"reason": str(error)})
            self._cards_answer = False
            return {gpu.uuid: CardReading(gpu=gpu.uuid, error=str(error)) for gpu in gpus}
        self._cards_answer = True
        return readings

    async def _ask_host(self, question: Callable[[], T]) -> T:
        try:
            return await self._files.ask(question, self._settings.host_answer_s)
        except NoAnswer as error:
            raise HostError(f"/proc or the claims' files can't be read now: {error}") from error

    async def _ask_pod_names(self, claims: tuple[AllocatedClaim, ...]) -> None:
        asked = claims_to_ask(claims, self._pods, self._host.known_mounts)
        if not asked or not self._may_ask():
            return
        for claim in asked:
            self._host.name_pods(await self._pods_of_claim(claim))


def _has_uncapped(claim: AllocatedClaim) -> bool:
    return any(not is_cap(share.cores_percent) for share in claim.shares)
