"""A process that has a context on a card, as the host sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ContainerMounts:
    """What the mounts of a container tell of it."""

    pod_uid: str
    """Of its pod; empty where they don't tell."""
    container: str
    """Its name in the pod."""
    budgets: frozenset[tuple[str, str]]
    """Claim UID and request of each budget that it has."""


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """One process on a card."""

    pid: int
    """In the host's PID namespace."""
    inner_pid: int
    """In its own."""
    pid_namespace: int
    """Inode of its own PID namespace; 0: not known."""
    mounts: ContainerMounts | None
    """None: no budget of ours is mounted where it runs."""
