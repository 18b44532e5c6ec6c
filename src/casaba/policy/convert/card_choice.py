"""Annotations that choose cards by UUID or type, as CEL and as a question about visible cards.

`nvidia.com/use-gpuuuid` and `nouse-gpuuuid` hold whole UUIDs, `use-gputype` and `nouse-gputype`
parts, in any case, of the type as HAMi registers it: `NVIDIA-` and the product name (its checkUUID
and checkGPUtype). All of them are comma lists, and they hold for all containers of the pod.
"""

import json
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from casaba.policy.convert.facts import ClusterFacts, VisibleCards
from casaba.policy.convert.pods import Object, annotation, annotations
from casaba.policy.convert.refusals import PodRefused, shown
from casaba.settings.host_paths import DRIVER_NAME

USE_UUID, NO_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
CHOOSING = (USE_UUID, NO_UUID, USE_TYPE, NO_TYPE)

EXPRESSION_LIMIT_BYTES = 10_240
"""Of a CEL selector (resource/v1)."""
ATTRIBUTE_LIMIT_BYTES = 64
"""Of an attribute of a device (resource/v1): a longer UUID, or a type that is longer by more than
its prefix, would match none."""

_TYPE_PREFIX = "nvidia-"

_ATTRIBUTES = f"device.attributes[{json.dumps(DRIVER_NAME)}]"
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, kw_only=True)
class _Rule:
    annotation: str
    entries: tuple[str, ...]

    @property
    def _excludes(self) -> bool:
        return self.annotation in (NO_UUID, NO_TYPE)

    def allows_product(self, name: str) -> bool:
        """What the expression says of a card of this type; rules on UUIDs say nothing."""
        if self.annotation in (USE_UUID, NO_UUID):
            return True
        registered = _TYPE_PREFIX + _lower(name)
        return any(entry in registered for entry in self.entries) != self._excludes

    def expression(self) -> str:
        """Without an error also on a device that lacks the attribute."""
        literals = f"[{', '.join(map(_literal, self.entries))}]"
        if self.annotation in (USE_UUID, NO_UUID):
            condition = f'"uuid" in {_ATTRIBUTES} && {_ATTRIBUTES}.uuid in {literals}'
        else:
            registered = f"({_literal(_TYPE_PREFIX)} + {_ATTRIBUTES}.productName.lowerAscii())"
            condition = (
                f'"productName" in {_ATTRIBUTES} && '
                f"{literals}.exists(part, {registered}.contains(part))"
            )
        return f"!({condition})" if self._excludes else condition


@dataclass(frozen=True, kw_only=True)
class CardChoice:
    """Which cards a pod may have."""

    rules: tuple[_Rule, ...]

    @property
    def selectors(self) -> tuple[str, ...]:
        """CEL expressions, all of which must hold."""
        return tuple(rule.expression() for rule in self.rules)

    def visible(self, facts: ClusterFacts) -> VisibleCards:
        """Those of the visible cards."""
        cards = facts.visible
        if any(rule.annotation in (USE_TYPE, NO_TYPE) for rule in self.rules):
            cards = cards.of_products(self._allows_product)
        used, unused = self._entries(USE_UUID), self._entries(NO_UUID)
        if used:
            named = facts.named([uuid for uuid in used if uuid not in unused])
            return VisibleCards.of(
                card for card in named if self._allows_product(card.product_name)
            )
        named = facts.named(unused)
        return cards.without([card for card in named if self._allows_product(card.product_name)])

    def _allows_product(self, name: str) -> bool:
        return all(rule.allows_product(name) for rule in self.rules)

    def _entries(self, name: str) -> tuple[str, ...]:
        return tuple(
            entry for rule in self.rules if rule.annotation == name for entry in rule.entries
        )

    def __str__(self) -> str:
        return ", ".join(rule.annotation for rule in self.rules)


def card_choice(pod: Object) -> CardChoice:
    """What the pod's annotations say; raises PodRefused."""
    said = annotations(pod)
    return CardChoice(rules=tuple(_rule(pod, name) for name in CHOOSING if name in said))


def _rule(pod: Object, name: str) -> _Rule:
    """An empty list is refused: it would choose no card, or all of them."""
    normal: Callable[[str], str] = _lower if name in (USE_TYPE, NO_TYPE) else str
    parts = (part.strip() for part in annotation(pod, name).split(","))
    entries = tuple(dict.fromkeys(normal(part) for part in parts if part))
    if not entries:
        raise PodRefused(f"annotation {name}: it names no card; leave it out or name one")
    _check_entries(name, entries)
    rule = _Rule(annotation=name, entries=entries)
    if len(rule.expression().encode()) > EXPRESSION_LIMIT_BYTES:
        raise PodRefused(
            f"annotation {name}: {len(entries)} entries are more than a claim can hold; "
            "choose by a common part of the type, or by fewer entries"
        )
    return rule


def _check_entries(name: str, entries: Sequence[str]) -> None:
    for entry in entries:
        bare = entry.removeprefix(_TYPE_PREFIX)
        if not entry.isprintable() or len(bare.encode()) > ATTRIBUTE_LIMIT_BYTES:
            raise PodRefused(
                f"annotation {name}: {shown(entry)} can't be a part of a card's name, which has "
                f"up to {ATTRIBUTE_LIMIT_BYTES} printable characters; see nvidia-smi -L"
            )


def _lower(text: str) -> str:
    """As CEL's lowerAscii: other letters stay."""
    return text.translate(_ASCII_LOWER)


def _literal(text: str) -> str:
    """A CEL string: JSON's escapes of quotes and backslashes are CEL's, other text is printable."""
    return json.dumps(text, ensure_ascii=False)
