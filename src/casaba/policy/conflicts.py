"""Whether somebody else gives out this node's cards: a device plugin, or an old HAMi.

Two that give out one card promise it twice. What is looked at is the Node object: resources that
the kubelet has from a device plugin, and the annotations in which HAMi's plugin registers cards
for its scheduler (`hami.io/node-nvidia-register`, kept fresh by `hami.io/node-handshake`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from casaba.errors import InvalidInput
from casaba.model import quantity
from casaba.model.problem import Problem

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"

_DELETED = "Deleted"
"""HAMi's scheduler writes it when the plugin has been silent."""

_TIME = re.compile(r"(\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d):(\d\d):(\d\d)")
_ANY_ZONE = timedelta(hours=15)
"""HAMi writes local time, mostly without its zone: only what is older than this is surely old."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """What a HAMi wrote last, and since when we see it, by any clock that only goes forward."""

    text: str
    since_s: float


@dataclass(frozen=True, kw_only=True)
class ConflictVerdict:
    """What there is, and when to look again though nothing has changed."""

    conflicts: tuple[Problem, ...] = ()
    heartbeat: Heartbeat | None = None
    """To be given to the next call."""
    look_again_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class ConflictRules:
    """What counts as a conflict."""

    resources: tuple[str, ...]
    """Names of resources that stand for cards; `*` for any characters."""
    silence_s: float
    """A HAMi that writes nothing for so long is gone."""


def find_conflicts(
    node: Mapping[str, Any],
    before: Heartbeat | None,
    rules: ConflictRules,
    *,
    now_s: float,
    utc: datetime,
) -> ConflictVerdict:
    """The conflicts on a node, as its object's JSON tells; whatever is odd in it is no conflict."""
    name = str(_part(node, "metadata").get("name", ""))
    plugin = _device_plugin(name, _part(node, "status"), rules.resources)
    hami, heartbeat, look_again_s = _hami(name, node, before, rules.silence_s, now_s, utc)
    return ConflictVerdict(
        conflicts=tuple(found for found in (plugin, hami) if found),
        heartbeat=heartbeat,
        look_again_s=look_again_s,
    )


def _device_plugin(
    node: str, status: Mapping[str, Any], resources: Iterable[str]
) -> Problem | None:
    """The kubelet keeps the capacity of a plugin that went for some minutes (allocatable is 0)."""
    patterns = tuple(resources)
    offered: dict[str, int] = {}
    for part in ("capacity", "allocatable"):
        for resource, amount in _part(status, part).items():
            if any(fnmatchcase(resource, pattern) for pattern in patterns):
                offered[resource] = max(offered.get(resource, 0), _count(amount))
    told = ", ".join(f"{resource}: {count}" for resource, count in sorted(offered.items()) if count)
    if not told:
        return None
    return Problem(
        reason="DevicePluginOffersCards",
        message=(
            f"a device plugin offers the cards of node {node} ({told}); both would give them out "
            "twice, so none is published here. Remove the plugin from this node (its DaemonSet, or "
            "the label that it selects), or take the label gpu=on away"
        ),
    )


def _hami(
    node: str,
    object_: Mapping[str, Any],
    before: Heartbeat | None,
    silence_s: float,
    now_s: float,
    utc: datetime,
) -> tuple[Problem | None, Heartbeat | None, float | None]:
    annotations = _part(_part(object_, "metadata"), "annotations")
    register, handshake = str(annotations.get(REGISTER, "")), str(annotations.get(HANDSHAKE, ""))
    if register.strip() in ("", "[]", ":") or handshake.startswith(_DELETED):
        return None, None, None
    text = f"{handshake} {register}"
    beat = before if before and before.text == text else Heartbeat(text=text, since_s=now_s)
    left_s = silence_s - (now_s - beat.since_s)
    if left_s <= 0 or _is_surely_old(handshake, utc):
        return None, beat, None
    conflict = Problem(
        reason="HamiOffersCards",
        message=(
            f"HAMi's device plugin offers the cards of node {node} (annotation {REGISTER}); both "
            "would give them out twice, so none is published here. Uninstall HAMi or take its "
            f"label from this node; {silence_s:.0f} s after its last sign the cards are published"
        ),
    )
    return conflict, beat, left_s


def _is_surely_old(handshake: str, utc: datetime) -> bool:
    if not (found := _TIME.search(handshake)):
        return False
    try:
        year, month, day, hour, minute, second = map(int, found.groups())
        written = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        return utc - written > _ANY_ZONE
    except (ValueError, OverflowError):
        return False


def _part(object_: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = object_.get(key)
    return part if isinstance(part, dict) else {}


def _count(amount: object) -> int:
    try:
        return quantity.parse(str(amount))
    except InvalidInput:
        return 0
