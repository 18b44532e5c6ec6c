"""What the kubelet remembers of claims: who uses them, what the drivers answered. On disk too.

The file is written before a driver is called, so that no prepared claim is ever forgotten. After
a restart nothing counts as prepared: prepare is asked for again (KEP-4381).
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from casaba.errors import HostError
from casaba.net.dra_client import AnsweredDevice
from casaba.node.files import explained, write_whole

log = logging.getLogger(__name__)

ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, kw_only=True)
class ClaimState:
    """One claim on this node."""

    namespace: str
    name: str
    uid: str
    pods: frozenset[str]
    """UIDs of the pods that use it."""
    drivers: Mapping[str, tuple[AnsweredDevice, ...]]
    """The drivers of its allocation, and what each answered."""
    prepared: bool = False

    @property
    def key(self) -> ClaimKey:
        """Names of claims are used again, UIDs are not; the kubelet goes by names."""
        return self.namespace, self.name


@dataclass(frozen=True, kw_only=True)
class _Checkpoint:
    """The file."""

    claims: tuple[ClaimState, ...] = field(default_factory=tuple)


class ClaimStates:
    """All claims of this node; `save` after changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: dict[ClaimKey, ClaimState] = {}

    def __iter__(self) -> Iterator[ClaimState]:
        return iter(tuple(self._states.values()))

    def get(self, key: ClaimKey) -> ClaimState | None:
        """A claim's state, if the node has it."""
        return self._states.get(key)

    def put(self, state: ClaimState) -> None:
        """Remember a claim's new state."""
        self._states[state.key] = state

    def drop(self, key: ClaimKey) -> None:
        """Forget a claim."""
        self._states.pop(key, None)

    def of_pod(self, uid: str) -> list[ClaimState]:
        """The claims that a pod uses."""
        return [state for state in self if uid in state.pods]

    def save(self) -> None:
        """Write the file, all or nothing; raises HostError."""
        content = msgspec.json.encode(_Checkpoint(claims=tuple(self._states.values())))
        write_whole(self._path, content, durable=False)

    def load(self) -> None:
        """Read the file if there is one; raises HostError, also for one that makes no sense."""
        with explained("read", self._path):
            if not self._path.exists():
                return
            content = self._path.read_bytes()
        try:
            checkpoint = msgspec.json.decode(content, type=_Checkpoint)
        except msgspec.DecodeError as error:
            raise HostError(
                f"{self._path} is damaged: {error}; end the node's pods and remove it"
            ) from error
        for state in checkpoint.claims:
            self.put(replace(state, prepared=False))
