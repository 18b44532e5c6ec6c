"""The kubelet's calls: each claim is read, decided and carried out, or refused with a reason."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from casaba.aiokit.locks import KeyedLocks
from casaba.errors import CasabaError, HostError, NoRoom, PrepareRefused
from casaba.model.claim import AllocatedClaim
from casaba.model.ids import BootId, ClaimUid, claim_uid
from casaba.model.prepared import CheckpointEntry, PreparedDevice
from casaba.net.dra_sockets import ClaimError, ClaimReference
from casaba.policy.claims import allocated_claim
from casaba.policy.prepare import NodeFacts, PreparePlan, plan_prepare
from casaba.services.node_agent.host import ClaimFiles
from casaba.wire.kubernetes import ResourceClaim

log = logging.getLogger(__name__)

ReadClaim = Callable[[str, str], Awaitable[ResourceClaim]]
"""Reads a claim by namespace and name; raises KubeError."""

Observe = Callable[[str, float, CasabaError | None], None]
"""Hears of each claim's call: `prepare` or `unprepare`, seconds, and what went wrong."""


def _unobserved(verb: str, seconds: float, error: CasabaError | None) -> None:
    pass


class ClaimServer:
    """Prepares and unprepares claims; implements net.dra_sockets.DraDriver.

    One call of one claim at a time, different claims side by side. What the node promised is in
    `_entries` before the first file is written, so two claims can't both get the last room.
    """

    def __init__(
        self,
        *,
        read_claim: ReadClaim,
        files: ClaimFiles,
        facts: NodeFacts,
        boot_id: BootId,
        entries: Mapping[ClaimUid, CheckpointEntry],
        room_wait_s: float,
        observe: Observe = _unobserved,
    ) -> None:
        self._read_claim = read_claim
        self._files = files
        self._facts = facts
        self._boot_id = boot_id
        self._entries = dict(entries)
        self._room_wait_s = room_wait_s
        self._observe = observe
        self._without_cards: str | None = None
        self._locks = KeyedLocks[str]()
        self._given_back = asyncio.Condition()

    def use(self, facts: NodeFacts) -> None:
        """Prepare claims with these cards from now on; prepared ones stay as they are."""
        self._facts = facts
        self._without_cards = None

    def wait_for_cards(self, reason: str) -> None:
        """Refuse to prepare until there are cards again; unpreparing needs none."""
        self._without_cards = reason

    @property
    def promised(self) -> tuple[AllocatedClaim, ...]:
        """The claims that this node serves in this life of the machine."""
        entries = self._entries.values()
        return tuple(entry.claim for entry in entries if entry.boot_id == self._boot_id)

    async def prepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[ClaimUid, tuple[PreparedDevice, ...] | ClaimError]:
        """See DraDriver. If cancelled: a claim is prepared, or can be prepared again."""
        async with asyncio.TaskGroup() as group:
            tasks = {ref.uid: group.create_task(self._answer_prepare(ref)) for ref in claims}
        return {ClaimUid(uid): task.result() for uid, task in tasks.items()}

    async def unprepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[ClaimUid, ClaimError | None]:
        """See DraDriver. Needs no API server; unknown claims are fine."""
        async with asyncio.TaskGroup() as group:
            tasks = {ref.uid: group.create_task(self._answer_unprepare(ref)) for ref in claims}
        return {ClaimUid(uid): task.result() for uid, task in tasks.items()}

    async def _answer_prepare(self, ref: ClaimReference) -> tuple[PreparedDevice, ...] | ClaimError:
        started_s = time.monotonic()
        try:
            uid = claim_uid(ref.uid)
            async with self._locks.of(uid):
                plan = await self._prepare(ref, uid)
        except CasabaError as error:
            self._observe("prepare", time.monotonic() - started_s, error)
            return _refusal("prepare", ref, error)
        self._observe("prepare", time.monotonic() - started_s, None)
        log.info("claim.prepared", extra=_named(ref))
        return plan.devices

    async def _prepare(self, ref: ClaimReference, uid: ClaimUid) -> PreparePlan:
        claim = allocated_claim(await self._read_claim(ref.namespace, ref.name), uid)
        plan = await self._plan(claim)
        before = self._entries.get(uid)
        entry = CheckpointEntry(claim=claim, boot_id=self._boot_id)
        self._entries[uid] = entry
        try:
            await asyncio.to_thread(self._files.carry_out, plan, entry)
        except HostError:
            if before is None or before.boot_id != self._boot_id:
                await asyncio.to_thread(self._files.roll_back, uid)
                del self._entries[uid]
            raise
        return plan

    async def _plan(self, claim: AllocatedClaim) -> PreparePlan:
        """The plan, once there is room; whoever gets it must promise before it waits again."""
        deadline_s = asyncio.get_running_loop().time() + self._room_wait_s
        while True:
            if self._without_cards is not None:
                raise PrepareRefused(self._without_cards)
            try:
                return plan_prepare(claim, self.promised, self._facts)
            except NoRoom:
                if not await self._something_given_back(deadline_s):
                    raise

    async def _something_given_back(self, deadline_s: float) -> bool:
        try:
            async with asyncio.timeout_at(deadline_s), self._given_back:
                return await self._given_back.wait()
        except TimeoutError:
            return False

    async def _answer_unprepare(self, ref: ClaimReference) -> ClaimError | None:
        started_s = time.monotonic()
        try:
            uid = claim_uid(ref.uid)
            async with self._locks.of(uid):
                await asyncio.to_thread(self._files.remove, uid)
                self._entries.pop(uid, None)
            async with self._given_back:
                self._given_back.notify_all()
        except CasabaError as error:
            self._observe("unprepare", time.monotonic() - started_s, error)
            return _refusal("unprepare", ref, error)
        self._observe("unprepare", time.monotonic() - started_s, None)
        log.info("claim.unprepared", extra=_named(ref))
        return None


def _refusal(verb: str, ref: ClaimReference, error: CasabaError) -> ClaimError:
    text = f"{verb} claim {ref.namespace}/{ref.name} ({ref.uid}): {error}"
    log.error(f"claim.{verb}_failed", extra={**_named(ref), "reason": str(error)})
    return ClaimError(text)


def _named(ref: ClaimReference) -> dict[str, str]:
    return {"namespace": ref.namespace, "claim": ref.name, "uid": ref.uid}
