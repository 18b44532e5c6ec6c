"""What a case is: a small cluster, claims, and what must come of them on each node."""

from dataclasses import dataclass, field

from tests.conformance.allocator.building import Json, node


@dataclass(frozen=True)
class Given:
    """All claims get devices: for each, in order, `request=device` and the amounts consumed."""

    devices: tuple[str, ...]
    node_selector: Json | None = None
    """Of the first claim; compared only if given."""
    config: tuple[str, ...] | None = None
    """Of the first claim, as `source request,… parameters`; compared only if given."""


@dataclass(frozen=True)
class Denied:
    """The node is no use; the pod's message holds these words."""

    words: str = "cannot allocate all claims"


@dataclass(frozen=True)
class Failed:
    """The attempt ends with an error that holds these words."""

    words: str


Outcome = Given | Denied | Failed


@dataclass(frozen=True, kw_only=True)
class Case:
    """Slices, classes, claims that hold devices already, claims to allocate together."""

    name: str
    slices: list[Json]
    claims: list[Json]
    classes: list[Json]
    holders: list[Json] = field(default_factory=list)
    nodes: list[Json] = field(default_factory=lambda: [node("a")])
    expected: dict[str, Outcome]
    """By the short name of the node."""
    alone: bool = False
    """What it makes can be seen by other cases' nodes, so it must not run beside them."""


def given(
    *devices: str, selector: Json | None = None, config: tuple[str, ...] | None = None
) -> Given:
    return Given(devices, selector, config)
