"""What to write so that the API server has exactly the slice that this node wants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.policy.slices import Spec


@dataclass(frozen=True, kw_only=True)
class PublishedSlice:
    """A slice of our driver and node as the API server has it."""

    name: str
    uid: str
    resource_version: str
    spec: Spec

    @property
    def generation(self) -> int:
        """Of the pool; a higher one makes all slices of lower ones obsolete."""
        return int(self.spec["pool"]["generation"])


@dataclass(frozen=True, kw_only=True)
class PublishPlan:
    """Writes in their order: obsolete slices go first, so that no device is offered twice."""

    delete: tuple[PublishedSlice, ...] = ()
    replace: tuple[tuple[PublishedSlice, Spec], ...] = ()
    create: tuple[Spec, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the API server has what is wanted already."""
        return not (self.delete or self.replace or self.create)


def plan_publish(
    desired: Callable[[int], Spec], published: Sequence[PublishedSlice]
) -> PublishPlan:
    """The plan for a pool of one slice; `desired` makes its spec for a pool generation.

    The newest slice is kept and changed in place, which needs no new generation (KEP-4381);
    any other is deleted.
    """
    if not published:
        return PublishPlan(create=(desired(1),))
    newest, *others = sorted(published, key=lambda slice_: -slice_.generation)
    wanted = desired(newest.generation)
    same_node = all(newest.spec.get(key) == wanted[key] for key in ("driver", "nodeName"))
    if newest.spec["pool"]["name"] != wanted["pool"]["name"] or not same_node:
        return PublishPlan(delete=tuple(published), create=(desired(newest.generation + 1),))
    replace = () if newest.spec == wanted else ((newest, wanted),)
    return PublishPlan(delete=tuple(others), replace=replace)


def plan_withdrawal(published: Sequence[PublishedSlice]) -> PublishPlan:
    """The plan for a node that must not be found: no slice at all."""
    return PublishPlan(delete=tuple(published))


def dropped_fields(sent: Any, stored: Any, path: str = "spec") -> tuple[str, ...]:
    """Paths of what was sent but not stored: a feature gate of the API server is off."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return tuple(
            found
            for key, value in sent.items()
            for found in (
                dropped_fields(value, stored[key], f"{path}.{key}")
                if key in stored
                else (f"{path}.{key}",)
            )
        )
    if isinstance(sent, list) and isinstance(stored, list):
        return tuple(
            found
            for number, (value, kept) in enumerate(zip(sent, stored, strict=False))
            for found in dropped_fields(value, kept, f"{path}[{number}]")
        )
    return ()
