"""Whether somebody else gives out this node's cards: a device plugin, or an old HAMi.

Two that give out one card promise it twice. What is looked at is the Node object: resources that
the kubelet has from a device plugin, and the annotations in which HAMi's plugin registers cards
for its scheduler (`hami.io/node-nvidia-register`, kept fresh by `hami.io/node-handshake`). The
annotations stay when HAMi goes: how long it has been silent tells the one from the other.
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
from casaba.policy.field_times import field_written_at, object_written_at

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"

_DELETED = "Deleted"
"""HAMi's scheduler writes it when the plugin has been silent."""

_TIME = re.compile(r"(\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d):(\d\d):(\d\d)")
_ANY_ZONE = timedelta(hours=15)
"""HAMi writes local time, mostly without its zone: only what is older than this is surely old."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """What a HAMi wrote last, and since when it is there, by any clock that only goes forward."""

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
    server: datetime | None = None,
) -> ConflictVerdict:
    """The conflicts on a node, as its object's JSON tells; whatever is odd in it is no conflict.

    `now_s` is by the clock of the heartbeats, `utc` our own; `server` is a time that the API
    server's clock has shown, where one is known.
    """
    name = str(_part(node, "metadata").get("name", ""))
    plugin = _device_plugin(name, _part(node, "status"), rules.resources)
    beat = _heartbeat(node, before, now_s, server)
    left_s = rules.silence_s - (now_s - beat.since_s) if beat else 0.0
    offers = left_s > 0 and not _is_surely_old(_annotation(node, HANDSHAKE), utc)
    hami = _hami(name, rules) if offers else None
    return ConflictVerdict(
        conflicts=tuple(found for found in (plugin, hami) if found),
        heartbeat=beat,
        look_again_s=left_s if offers else None,
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


def _heartbeat(
    node: Mapping[str, Any], before: Heartbeat | None, now_s: float, server: datetime | None
) -> Heartbeat | None:
    """None where no HAMi registers cards, or its scheduler has noticed that the plugin is gone."""
    register, handshake = _annotation(node, REGISTER), _annotation(node, HANDSHAKE)
    if register.strip() in ("", "[]", ":") or handshake.startswith(_DELETED):
        return None
    text = f"{handshake} {register}"
    since_s = now_s - _age_s(node, server)
    if before and before.text == text:
        since_s = min(since_s, before.since_s)
    return Heartbeat(text=text, since_s=since_s)


def _age_s(node: Mapping[str, Any], server: datetime | None) -> float:
    """How old the handshake is at least, all by the API server's clock; 0 where that is not told.

    Whoever wrote anything to the node later, such as its kubelet, shows how late it is. A plugin
    that starts again after a long time is not missed: the kubelet still has its resource.
    """
    written = field_written_at(node, "metadata", "annotations", HANDSHAKE)
    if written is None:
        return 0.0
    seen = [at for at in (object_written_at(node), server) if at]
    return max(0.0, (max(seen) - written).total_seconds())


def _hami(node: str, rules: ConflictRules) -> Problem:
    return Problem(
        reason="HamiOffersCards",
        message=(
            f"HAMi's device plugin offers the cards of node {node} (annotation {REGISTER}); both "
            "would give them out twice, so none is published here. Uninstall HAMi or take its "
            f"label from this node; {rules.silence_s:.0f} s after its last sign the cards are "
            f"published. Where it is gone for good: {forget_hami(node)}"
        ),
    )


def forget_hami(node: str) -> str:
    """The command by which a HAMi that is gone is forgotten at once."""
    return f"kubectl annotate node {node} {REGISTER}- {HANDSHAKE}-"


def _is_surely_old(handshake: str, utc: datetime) -> bool:
    if not (found := _TIME.search(handshake)):
        return False
    try:
        year, month, day, hour, minute, second = map(int, found.groups())
        written = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        return utc - written > _ANY_ZONE
    except (ValueError, OverflowError):
        return False


def _annotation(node: Mapping[str, Any], name: str) -> str:
    return str(_part(_part(node, "metadata"), "annotations").get(name, ""))


def _part(object_: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = object_.get(key)
    return part if isinstance(part, dict) else {}


def _count(amount: object) -> int:
    try:
        return quantity.parse(str(amount))
    except InvalidInput:
        return 0
