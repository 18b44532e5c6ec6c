"""One leader among several processes, by a Lease.

Source: coordination.k8s.io/v1 and client-go's leader election. No clock but the local monotonic
one is believed: the times in the Lease are for people. A candidate waits for the holder's
`leaseDurationSeconds` from when it *saw* the last change; the leader counts its shorter deadline
from before it *sent* its last renewal. So two leaders would need clocks whose rates differ by
more than those two do.
"""

import asyncio
import logging
import math
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from casaba.aiokit import run_guarded
from casaba.errors import CasabaError
from casaba.kube.client import KubeClient
from casaba.kube.errors import Conflict, KubeError, NotFound
from casaba.kube.resources import LEASES
from casaba.wire.kubernetes import Lease, LeaseSpec

log = logging.getLogger(__name__)

JITTER = 0.2
"""Candidates try up to this much later than each retry period, so as not to try all at once."""


class LeadershipLost(CasabaError):
    """The Lease could not be renewed in time, or somebody else holds it."""


@dataclass(frozen=True, kw_only=True)
class ElectionTimes:
    """How fast leaders change; the defaults are client-go's. Each is shorter than the one above."""

    lease_duration_s: float = 15.0
    """How long others wait after the last renewal that they saw."""

    renew_deadline_s: float = 10.0
    """How long the leader goes on without a renewal. The rest is for ending its work."""

    retry_period_s: float = 2.0
    """How often it is tried."""

    def __post_init__(self) -> None:
        if not self.lease_duration_s > self.renew_deadline_s > self.retry_period_s > 0:
            raise ValueError(f"{self}: each time must be shorter than the one before it")


def new_identity() -> str:
    """A name for this process that no other process has, nor this one after a restart."""
    return f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"


class Election:
    """A candidate for one Lease. It has one life: lose, and `lead` again to stand again."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str | None = None,
        times: ElectionTimes | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self.identity = identity or new_identity()
        self._times = times or ElectionTimes()
        self._seen: tuple[str, LeaseSpec] = ("", LeaseSpec())
        self._seen_at_s = -math.inf
        self._renewed_at_s = -math.inf
        self._leads = False

    @property
    def leader(self) -> str:
        """Who held the Lease when we last looked, empty if nobody did."""
        return self._seen[1].holder_identity or ""

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait to be the leader, do the work, and give the Lease back when it has ended.

        Raises LeadershipLost when the work had to be cancelled: it has ended then, before the
        Lease could be taken by another, provided that it ended within the time between deadline
        and duration. What the work raises goes on to the caller.
        If cancelled: the same as when the work ends.
        """
        await self._acquire()
        log.info("election.won", extra=self._told())
        try:
            await run_guarded(_as_coroutine(work), self._keep())
        finally:
            if self._leads:
                await self._release()

    async def _acquire(self) -> None:
        while True:
            # An answer that took too long is no basis to start on: the deadline has passed.
            if await self._try() and _now_s() < self._deadline_s:
                self._leads = True
                return
            await asyncio.sleep(self._times.retry_period_s * (1 + JITTER * random.random()))

    @property
    def _deadline_s(self) -> float:
        return self._renewed_at_s + self._times.renew_deadline_s

    async def _keep(self) -> None:
        """Renew for ever; raises LeadershipLost."""
        while True:
            try:
                async with asyncio.timeout_at(self._deadline_s):
                    await asyncio.sleep(self._times.retry_period_s)
                    while not await self._try():
                        if self.leader != self.identity:
                            raise self._lost(f"{self.leader or 'nobody'} holds it")
                        await asyncio.sleep(self._times.retry_period_s)
            except TimeoutError:
                raise self._lost("it could not be renewed in time") from None

    def _lost(self, why: str) -> LeadershipLost:
        self._leads = False
        log.error("election.lost", extra={**self._told(), "why": why})
        return LeadershipLost(
            f"lease {self._namespace}/{self._name}: {self.identity} leads no more: {why}"
        )

    async def _try(self) -> bool:
        """Create, take or renew the Lease once; whether it is ours now."""
        started_s = _now_s()
        try:
            ours = await self._take()
        except KubeError as error:
            log.warning("election.try_failed", extra={**self._told(), "error": str(error)})
            return False
        if ours:
            self._renewed_at_s = started_s
        return ours

    async def _take(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except NotFound:
            return await self._create()
        self._look(lease)
        spec = lease.spec
        if self.leader not in ("", self.identity) and not self._is_expired(spec):
            return False
        try:
            self._look(await self._replace(lease, self._record(spec)))
        except Conflict:
            return False  # somebody was faster, or we ourselves were, by a write whose answer
            # was lost: the next look tells
        return True

    async def _create(self) -> bool:
        body = {"metadata": {"name": self._name}, "spec": self._record(LeaseSpec())}
        try:
            self._look(await self._client.create(LEASES, body, namespace=self._namespace))
        except Conflict:
            return False
        return True

    def _look(self, lease: Lease) -> None:
        seen = (lease.metadata.uid, lease.spec)
        if seen != self._seen:
            self._seen, self._seen_at_s = seen, _now_s()

    def _is_expired(self, spec: LeaseSpec) -> bool:
        promised_s = spec.lease_duration_seconds or self._times.lease_duration_s
        return _now_s() >= self._seen_at_s + promised_s

    def _record(self, before: LeaseSpec) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        transitions = before.lease_transitions or 0
        changes_hands = before.holder_identity != self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._times.lease_duration_s),
            "acquireTime": now if changes_hands else before.acquire_time or now,
            "renewTime": now,
            "leaseTransitions": transitions + (changes_hands and bool(before.acquire_time)),
        }

    async def _replace(self, lease: Lease, record: dict[str, Any]) -> Lease:
        return await self._client.patch(
            LEASES,
            self._name,
            {"spec": record},
            namespace=self._namespace,
            uid=lease.metadata.uid,
            resource_version=lease.metadata.resource_version,
        )

    async def _release(self) -> None:
        """Let the next one in at once, if we still can; the Lease ends by itself if not."""
        self._leads = False
        give_up_at_s = min(self._deadline_s, _now_s() + self._times.retry_period_s)
        try:
            async with asyncio.timeout_at(give_up_at_s):
                lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
                if lease.spec.holder_identity == self.identity:
                    given_back = {"holderIdentity": "", "leaseDurationSeconds": 1}
                    self._look(await self._replace(lease, self._record(lease.spec) | given_back))
        except (KubeError, TimeoutError) as error:
            log.warning("election.not_released", extra={**self._told(), "error": str(error)})

    def _told(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self._name}", "identity": self.identity}


async def _as_coroutine(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
