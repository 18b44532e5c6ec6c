"""Our own metrics of real use, for each slice, container and card of a node.

Everything of a slice is told once, of its `owner` (model.slice_use): where containers share a
slice the container, and where pods do the pod, is an empty label, so that sums are right;
`casaba_slice_user` names them all. HAMi's set is in `hami_usage_metrics`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.model.node_use import NodeUse
from casaba.model.slice_use import CardUse, ContainerName, GuardState, SliceUse
from casaba.policy.hami_usage_metrics import hami_usage_families, legacy_usage_families
from casaba.wire.exposition import Family, Sample, known_samples
from casaba.wire.region_file import KINDS

SLICE_LABELS = ("namespace", "pod", "container", "claim", "request")
SLICE_CARD_LABELS = (*SLICE_LABELS, "gpu")
CONTAINER_LABELS = ("namespace", "pod", "container")
CARD_LABELS = ("node", "gpu", "device")

_NS_PER_S = 1e9
_PERCENT = 100.0

_Kind = Literal["gauge", "counter"]


def usage_families(use: NodeUse, *, legacy: bool = False) -> list[Family]:
    """All families of one reading; with `legacy`, HAMi's names of before 2.9 too."""
    return [
        *hami_usage_families(use),
        *(legacy_usage_families(use) if legacy else ()),
        *_slice_card_families(use.slices),
        *_slice_families(use.slices),
        *_guard_families(use.guards),
        *_card_families(use),
        _pods_told(use),
    ]


def _pods_told(use: NodeUse) -> Family:
    text = "1: the kubelet told its pods; 0: names are from before, or missing."
    samples = [((use.node,), int(use.pods_told))]
    return _family("casaba_pods_told", "gauge", text, ("node",), samples)


def _granted(card: CardUse) -> float:
    """The part of the card's time; 0 and 100 cores mean no cap."""
    return (card.cores_percent or _PERCENT) / _PERCENT


def _own_part(card: CardUse) -> float | None:
    """Of its own time; None while it is not known."""
    if card.card_percent is None:
        return None
    return card.card_percent / _PERCENT / _granted(card)


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / _NS_PER_S


_OF_A_SLICES_CARD: tuple[tuple[str, _Kind, str, Callable[[CardUse], float | None]], ...] = (
    (
        "casaba_slice_memory_limit_bytes",
        "gauge",
        "Memory that the slice can ask for.",
        lambda card: card.memory_limit_bytes,
    ),
    (
        "casaba_slice_memory_used_bytes",
        "gauge",
        "Memory that the slice asked for.",
        lambda card: card.memory_used_bytes,
    ),
    (
        "casaba_slice_memory_overhead_bytes",
        "gauge",
        "What the slice's contexts are taken to cost.",
        lambda card: card.overhead_bytes,
    ),
    (
        "casaba_slice_cores_ratio",
        "gauge",
        "Part of the card's time that the slice can use (0-1).",
        _granted,
    ),
    (
        "casaba_slice_utilization_ratio",
        "gauge",
        "Of its own time, what the slice used since the last scrape; over 1 after long kernels.",
        _own_part,
    ),
    (
        "casaba_gpu_seconds",
        "counter",
        "The card's time that the slice used.",
        lambda card: _seconds(card.busy_ns),
    ),
    (
        "casaba_wait_seconds",
        "counter",
        "Time that launches of the slice were held back.",
        lambda card: _seconds(card.wait_ns),
    ),
)

_OF_A_SLICE: tuple[tuple[str, _Kind, str, Callable[[SliceUse], float | None]], ...] = (
    (
        "casaba_refusals",
        "counter",
        "Allocations that were refused for being over the limit.",
        lambda one: one.refusals,
    ),
    (
        "casaba_launches",
        "counter",
        "Launches, as far as a scrape saw the process that made them.",
        lambda one: one.launches,
    ),
    (
        "casaba_slice_processes",
        "gauge",
        "Living processes that have a guard.",
        lambda one: None if one.pids is None else len(one.pids),
    ),
    (
        "casaba_slice_accounting_damaged",
        "gauge",
        "1: the tenant wrote over its accounting; what it uses is not known, the limits hold.",
        lambda one: int(one.damaged),
    ),
)


def _slice_card_families(slices: Sequence[SliceUse]) -> list[Family]:
    labelled = [
        ((*_slice_labels(one, one.owner), card.gpu), card) for one in slices for card in one.cards
    ]
    return [
        _family(
            name,
            kind,
            text,
            SLICE_CARD_LABELS,
            known_samples([(key, value(card)) for key, card in labelled]),
        )
        for name, kind, text, value in _OF_A_SLICES_CARD
    ]


def _slice_families(slices: Sequence[SliceUse]) -> list[Family]:
    labelled = [(_slice_labels(one, one.owner), one) for one in slices]
    families = [
        _family(
            name,
            kind,
            text,
            SLICE_LABELS,
            known_samples([(key, value(one)) for key, one in labelled]),
        )
        for name, kind, text, value in _OF_A_SLICE
    ]
    return [*families, _kinds(labelled), _users(slices)]


def _kinds(labelled: Iterable[tuple[tuple[str, ...], SliceUse]]) -> Family:
    samples = [
        ((*key, kind), size)
        for key, one in labelled
        for kind, size in zip(KINDS, one.kinds_bytes, strict=False)
        if size
    ]
    text = "Memory of the slice by kind, where there is any; contexts are overhead."
    name = "casaba_slice_memory_kind_bytes"
    return _family(name, "gauge", text, (*SLICE_LABELS, "kind"), samples)


def _users(slices: Iterable[SliceUse]) -> Family:
    samples = [(_slice_labels(one, user), 1) for one in slices for user in one.users]
    text = "1 for each container that has the slice."
    return _family("casaba_slice_user", "gauge", text, SLICE_LABELS, samples)


def _slice_labels(slice_: SliceUse, name: ContainerName) -> tuple[str, ...]:
    return (slice_.namespace, name.pod, name.container, slice_.claim, slice_.request)


def _guard_families(guards: Sequence[GuardState]) -> list[Family]:
    told = [((one.namespace, one.name.pod, one.name.container), one) for one in guards]
    alive = [(key, int(not one.unguarded)) for key, one in told if one.guarded or one.unguarded]
    unguarded = [(key, one.unguarded) for key, one in told]
    return [
        _family(
            "casaba_guard_alive",
            "gauge",
            "0: a process of the container is on a card without a guard; 1: all have one; "
            "no sample while none is on a card.",
            CONTAINER_LABELS,
            alive,
        ),
        _family(
            "casaba_unguarded_processes",
            "gauge",
            "Processes of the container that are on a card without a guard.",
            CONTAINER_LABELS,
            unguarded,
        ),
    ]


def _card_families(use: NodeUse) -> list[Family]:
    allowances = _allowances(use)
    values: tuple[tuple[str, str, Callable[[Gpu], float | None]], ...] = (
        (
            "casaba_card_healthy",
            "0: the card does not answer the driver.",
            lambda gpu: int(_is_healthy(use.readings.get(gpu.uuid))),
        ),
        (
            "casaba_card_allowance_bytes",
            "Overhead of contexts that is free in all slices of the card together.",
            lambda gpu: allowances.get(gpu.uuid, 0),
        ),
        (
            "casaba_card_foreign_processes",
            "Processes on the card that no slice limits.",
            lambda gpu: use.foreign.get(gpu.uuid),
        ),
    )
    labelled = [((use.node, gpu.uuid, gpu.device_name), gpu) for gpu in use.gpus]
    return [
        _family(
            name,
            "gauge",
            text,
            CARD_LABELS,
            known_samples([(key, value(gpu)) for key, gpu in labelled]),
        )
        for name, text, value in values
    ]


def _allowances(use: NodeUse) -> Mapping[GpuUuid, int]:
    found: dict[GpuUuid, int] = {}
    for one in use.slices:
        for card in one.cards:
            found[card.gpu] = found.get(card.gpu, 0) + card.allowance_bytes
    return found


def _is_healthy(reading: CardReading | None) -> bool:
    return reading is not None and reading.error is None


def _family(
    name: str, kind: _Kind, text: str, labels: tuple[str, ...], samples: Sequence[Sample]
) -> Family:
    return Family(name=name, kind=kind, help=text, labels=labels, samples=samples)
