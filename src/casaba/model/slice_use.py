"""What the containers of this node hold and use now: budgets, claims and pods joined.

Structs, not dataclasses: a scrape makes hundreds of them, and these are made ten times as fast.
"""

from msgspec import Struct

from casaba.model.ids import ClaimUid, GpuUuid, RequestName


class ContainerName(Struct, frozen=True, kw_only=True):
    """A container of a pod; a name is empty where several share what is told, or none is known."""

    pod: str = ""
    container: str = ""


class CardUse(Struct, frozen=True, kw_only=True):
    """What one budget holds and uses of one card."""

    gpu: GpuUuid
    minor: int
    memory_limit_bytes: int
    cores_percent: int
    """Share of the card's time; 0 and 100 mean no cap."""
    allowance_bytes: int
    """Overhead of contexts that is free."""
    memory_used_bytes: int | None = None
    """What living processes asked for; None, here and below: it can't be read now."""
    overhead_bytes: int | None = None
    """What their contexts are taken to cost."""
    busy_ns: int | None = None
    """The card's time since the budget was made, or the agent began if that was later and the
    budget has no cap."""
    wait_ns: int | None = None
    """Time that launches were held back since the budget was made."""
    card_percent: float | None = None
    """Part of the card's time in the last moments, 0 to 100; None also: not known yet."""


class SliceUse(Struct, frozen=True, kw_only=True):
    """One budget, which is one request of one claim, and who uses it."""

    namespace: str
    claim: str
    claim_uid: ClaimUid
    request: RequestName
    users: tuple[ContainerName, ...]
    """The containers that have it; empty while the kubelet names none."""
    cards: tuple[CardUse, ...]
    kinds_bytes: tuple[int, ...]
    """Memory by kind, in the order of the region's layout; empty without a living process."""
    pids: tuple[int, ...] | None
    """Living processes that have a guard, each in its own PID namespace; None, here and below: it
    can't be read now."""
    refusals: int | None
    launches: int | None
    last_launch_ns: int
    """CLOCK_BOOTTIME; 0: none yet."""
    damaged: bool
    """Whether its tenant wrote over its accounting."""

    @property
    def owner(self) -> ContainerName:
        """Whom the use is told of, once: the container, or the pod when its containers share it.

        A claim that several pods share belongs to none of them.
        """
        if len(self.users) == 1:
            return self.users[0]
        pods = {user.pod for user in self.users}
        return ContainerName(pod=pods.pop()) if len(pods) == 1 else ContainerName()


class GuardState(Struct, frozen=True, kw_only=True):
    """What is known of the processes of one container that has a slice."""

    namespace: str
    name: ContainerName
    guarded: int
    """Living processes with a slot in its budgets."""
    unguarded: int
    """Processes on a card without one."""
