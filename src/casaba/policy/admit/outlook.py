"""Whether a claim could be had if all cards that are visible now were empty."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from casaba.errors import InvalidInput
from casaba.policy.admit.amounts import as_text
from casaba.policy.admit.asked import Asked, AskedDevices, Entry
from casaba.policy.admit.look_alikes import distinct_nodes
from casaba.policy.allocation import (
    KUBERNETES_1_36,
    Allocated,
    Allocator,
    Behaviour,
    CandidateNode,
    Reason,
    Refused,
)
from casaba.wire.kubernetes import (
    DeviceClass,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)

MAX_DEVICES = 128
"""More cards are not looked at one by one: the API server waits for the answer."""
STEP_LIMIT = 2_000
"""Devices looked at for one node, before nothing is said of it."""

_NAMED_REASONS = 3
_REASON_CHARACTERS = 400
_UNDECIDED = ("gave up", "supported here", "being updated")
"""Words of the allocator that say nothing of what the scheduler will find."""
_UNNAMED = "claim /"
"""How the allocator calls a claim that has no name yet."""


def pending_reason(
    devices: AskedDevices,
    slices: Sequence[ResourceSlice],
    classes: Mapping[str, DeviceClass],
    behaviour: Behaviour = KUBERNETES_1_36,
) -> str:
    """Why no node could serve our requests of the claim; empty if one could, or if unknown."""
    claim = _our_part(devices)
    if claim is None:
        return ""
    reasons: dict[str, str] = {}
    looked_at = 0
    for node, offered in distinct_nodes(slices, claim, classes):
        looked_at += sum(len(slice_.spec.devices) for slice_ in offered)
        if reasons and looked_at > MAX_DEVICES:
            return ""
        answer = _answer(node, offered, claim, classes, behaviour)
        if answer is None:
            return ""
        for about, text in answer:
            reasons.setdefault(about, text)
    return _joined(list(reasons.values()))


def _joined(texts: list[str]) -> str:
    more = f"; and {len(texts) - _NAMED_REASONS} more" if len(texts) > _NAMED_REASONS else ""
    return "; ".join(texts[:_NAMED_REASONS]) + more


def _answer(
    node: str,
    offered: Sequence[ResourceSlice],
    claim: ResourceClaim,
    classes: Mapping[str, DeviceClass],
    behaviour: Behaviour,
) -> list[tuple[str, str]] | None:
    """Why the node, if it were empty, could not serve the claim; None if it could, or may."""
    allocator = Allocator(
        slices=offered,
        classes=classes,
        allocated=(),
        behaviour=behaviour,
        new_share_id=lambda: "",
        step_limit=STEP_LIMIT,
    )
    try:
        answer = allocator.allocate(CandidateNode(name=node), [claim])
    except InvalidInput as error:
        reasons = [(str(error), _named(str(error)))]
    else:
        if isinstance(answer, Allocated):
            return None
        reasons = list(_sentences(answer))
    undecided = any(words in about for about, _ in reasons for words in _UNDECIDED)
    return None if undecided else reasons


def _sentences(refused: Refused) -> Iterable[tuple[str, str]]:
    """What is said of one node; two nodes with the same obstacle say it once."""
    for reason in refused.why:
        yield f"{reason.request}: {reason.sentence}", _sentence(reason)


def _sentence(reason: Reason) -> str:
    request = f"request {reason.request}: " if reason.request and reason.devices else ""
    return _named(f"{request}{reason}")


def _named(text: str) -> str:
    text = text.replace(f"{_UNNAMED}, request", "request").replace(_UNNAMED, "the claim")
    text = " ".join(text.split())
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]}…"


def _our_part(devices: AskedDevices) -> ResourceClaim | None:
    """The claim without what other drivers must serve; None if nothing is left to ask."""
    requests = [forms for forms in devices.requests if all(asked.is_ours for asked in forms)]
    requests = [forms for forms in requests if forms]
    if not requests:
        return None
    ours = {name for forms in requests for one in forms for name in (one.base, one.name)}
    whole = len(requests) == len(devices.requests)
    constraints = [
        dict(entry.form) for entry in devices.constraints if _is_about(entry, ours, whole)
    ]
    spec = {"devices": {"requests": [_request(r) for r in requests], "constraints": constraints}}
    try:
        read = msgspec.convert(spec, ResourceClaimSpec)
    except msgspec.ValidationError:
        return None  # the API server will say so
    return ResourceClaim(metadata=ObjectMeta(), spec=read)


def _is_about(entry: Entry, ours: set[str], whole: bool) -> bool:
    return entry.requests <= ours if entry.requests else whole


def _request(forms: tuple[Asked, ...]) -> dict[str, Any]:
    first = forms[0]
    if not first.alternative:
        return {"name": first.base, "exactly": _form(first)}
    return {"name": first.base, "firstAvailable": [_form(asked) for asked in forms]}


def _form(asked: Asked) -> dict[str, Any]:
    """In the form of v1, with the defaults that the API server fills in."""
    form = {key: value for key, value in asked.form.items() if value is not None}
    form["capacity"] = {"requests": as_text(asked.amounts)}
    return form
