"""What conversion must know of the cluster."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card that a slice shows now."""

    memory_bytes: int
    product_name: str
    uuid: str
    node: str


class _Kind(NamedTuple):
    """What cards of one node have in common."""

    node: str
    product_name: str
    memory_bytes: int


def _kind(card: Card) -> _Kind:
    return _Kind(card.node, card.product_name, card.memory_bytes)


class VisibleCards:
    """Some of the cards, counted; what was counted once is kept."""

    def __init__(self, counts: Mapping[_Kind, int]) -> None:
        self._counts = counts
        self._most: dict[int, int] = {}

    @classmethod
    def of(cls, cards: Iterable[Card]) -> "VisibleCards":
        """These cards."""
        return cls(Counter(map(_kind, cards)))

    def __bool__(self) -> bool:
        return bool(self._counts)

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """How many cards have so many bytes of memory."""
        sizes = Counter[int]()
        for kind, count in self._counts.items():
            sizes[kind.memory_bytes] += count
        return sizes

    @cached_property
    def largest_bytes(self) -> int:
        """Memory of the largest card; 0 without cards."""
        return max(self.sizes, default=0)

    def most_on_one_node(self, memory_bytes: int) -> int:
        """How many cards of at least so much memory one node has."""
        least = min((size for size in self.sizes if size >= memory_bytes), default=0)
        if least and least not in self._most:
            nodes = Counter[str]()
            for kind, count in self._counts.items():
                nodes[kind.node] += count if kind.memory_bytes >= least else 0
            self._most[least] = max(nodes.values())
        return self._most.get(least, 0)

    def of_products(self, allows: Callable[[str], bool]) -> "VisibleCards":
        """Those whose product name is allowed."""
        products = {kind.product_name for kind in self._counts}
        allowed = {product for product in products if allows(product)}
        return VisibleCards(
            {kind: count for kind, count in self._counts.items() if kind.product_name in allowed}
        )

    def without(self, cards: Collection[Card]) -> "VisibleCards":
        """All but these, which are among them."""
        if not cards:
            return self
        counts = dict(self._counts)
        for card in cards:
            counts[_kind(card)] -= 1
        return VisibleCards({kind: count for kind, count in counts.items() if count})


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """One moment of the cluster, as far as warnings and percentages need it.

    One value can serve many pods; what was counted once is kept.
    """

    cards: tuple[Card, ...] = ()
    """What the newest slices of our driver show."""
    quota_resources: frozenset[str] = frozenset()
    """What ResourceQuotas of the pod's namespace limit, such as `requests.nvidia.com/gpu`."""
    extended_resources: frozenset[str] = frozenset()
    """`extendedResourceName` of all DeviceClasses (KEP-5004)."""

    @cached_property
    def visible(self) -> VisibleCards:
        """All cards."""
        return VisibleCards.of(self.cards)

    def named(self, uuids: Collection[str]) -> tuple[Card, ...]:
        """The cards of these UUIDs, as far as they are visible."""
        return tuple(card for uuid in uuids for card in self._by_uuid.get(uuid, ()))

    @cached_property
    def _by_uuid(self) -> Mapping[str, tuple[Card, ...]]:
        found: dict[str, tuple[Card, ...]] = {}
        for card in self.cards:
            found[card.uuid] = (*found.get(card.uuid, ()), card)
        return found
