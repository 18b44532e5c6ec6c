"""The claim of a converted pod, as a template for it."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from casaba.model.quantity import MIB, format_binary
from casaba.model.slice_parameters import UNSAID, SliceParameters
from casaba.policy.convert.card_choice import CardChoice
from casaba.policy.convert.card_requests import CardRequest, CardRequests
from casaba.policy.convert.facts import VisibleCards
from casaba.policy.convert.needs import FULL_PERCENT, CardNeed
from casaba.policy.convert.refusals import PodRefused, warning
from casaba.policy.convert.scheduling_wishes import SchedulingWishes
from casaba.policy.slices import CORES, MEMORY
from casaba.settings.conversion import ConversionSettings
from casaba.settings.host_paths import DRIVER_NAME

Spec = dict[str, Any]

UUID_ATTRIBUTE = f"{DRIVER_NAME}/uuid"
PCIE_ROOT_ATTRIBUTE = "resource.kubernetes.io/pcieRoot"

MAX_ALTERNATIVES = 8
"""Of one request (resource/v1, FirstAvailableDeviceRequestMaxSize)."""

MAX_CONSTRAINTS = 32
"""Of one claim (resource/v1, DeviceConstraintsMaxSize)."""

MAX_TEMPLATE_BYTES = 1 << 20
"""etcd takes 1.5 MiB (its --max-request-bytes), with what the API server adds."""

TEMPLATE_PREFIX = "casaba-"
_FORMAT = "1"
"""Changes when the same spec should come to another name."""
_NAME_DIGITS = 16

_CAPACITY = f"device.capacity[{json.dumps(DRIVER_NAME)}]"


class ClaimWriter:
    """Requests of one pod, written for the cards that it may have."""

    def __init__(self, choice: CardChoice, cards: VisibleCards, settings: ConversionSettings):
        self._choice = choice
        self._cards = cards
        self._settings = settings

    def spec(self, requests: CardRequests, wishes: SchedulingWishes) -> Spec:
        """The spec of a ResourceClaimTemplate (resource.k8s.io/v1). Raises PodRefused."""
        devices: Spec = {"requests": [self._request(request) for request in requests.requests]}
        if constraints := _constraints(requests, wishes):
            devices["constraints"] = constraints
        if config := _config(requests.requests):
            devices["config"] = config
        return {"spec": {"devices": devices}}

    def warnings(self, requests: Iterable[CardRequest]) -> tuple[str, ...]:
        """That percentages are not written for every size of card."""
        if not any(request.need.is_part_of_card for request in requests):
            return ()
        left_out = sorted(set(self._cards.sizes) - set(self._sizes()))
        if not left_out:
            return ()
        told = ", ".join(format_binary(size) for size in left_out)
        return (
            warning(
                f"{self._settings.percentage_resource}: a claim can name {MAX_ALTERNATIVES} sizes "
                f"of cards, so the pod can't have those of {told}; "
                f"ask for {self._settings.memory_resource} to use them"
            ),
        )

    def _request(self, request: CardRequest) -> Spec:
        if request.need.is_part_of_card:
            return {"name": request.name, "firstAvailable": self._alternatives(request)}
        need, selectors = request.need, list(self._choice.selectors)
        if need.is_all_memory and need.memory_mib:
            selectors.append(_memory_selector(">=", need.memory_bytes))
        exactly = _one_card(selectors, _amounts(need, need.memory_mib))
        return {"name": request.name, "exactly": exactly}

    def _alternatives(self, request: CardRequest) -> list[Spec]:
        """One for each size of card, the smallest first.

        A percentage says nothing of how much is needed, so the small card will do; the large
        ones stay free for those who need them. The scheduler also prefers nodes on which an
        earlier alternative fits (KEP-4816).
        """
        sizes = [size for size in self._sizes() if request.need.fits(size)]
        if not sizes:
            raise PodRefused(self._no_sizes(request.need))
        return [
            {
                "name": f"{size // MIB}mi" if size % MIB == 0 else f"{size}b",
                **_one_card(
                    [*self._choice.selectors, _memory_selector("==", size)],
                    _amounts(request.need, request.need.on_card(size)),
                ),
            }
            for size in sizes
        ]

    def _sizes(self) -> list[int]:
        """Of those that the pod may have the most frequent, in ascending order."""
        counts = self._cards.sizes
        by_frequency = sorted(counts, key=lambda size: (-counts[size], size))
        return sorted(by_frequency[:MAX_ALTERNATIVES])

    def _no_sizes(self, need: CardNeed) -> str:
        resource, instead = self._settings.percentage_resource, self._settings.memory_resource
        if self._cards:
            return (
                f"{resource}: no visible card has the {need.memory_mib} MiB that another container "
                f"of the pod needs of the same card; ask for {instead} in all of them"
            )
        if self._choice.rules:
            return (
                f"{resource}: no card that {self._choice} allows is visible, so its sizes are "
                f"unknown; check the annotation, or ask for {instead}"
            )
        return (
            f"{resource}: no card is visible yet, so the sizes of cards are unknown; try again "
            f"when a node offers cards (kubectl get resourceslices), or ask for {instead}"
        )


def template_name(spec: Spec) -> str:
    """The name of the template of this content. Raises PodRefused if it is too large to be kept."""
    content = _FORMAT + json.dumps(spec, sort_keys=True, separators=(",", ":"))
    if len(content) > MAX_TEMPLATE_BYTES:
        raise PodRefused(
            f"the pod's ResourceClaimTemplate would have {len(content) // 1024} KiB, and not more "
            f"than {MAX_TEMPLATE_BYTES // 1024} are kept: name fewer UUIDs or types in annotations,"
            " or ask for memory in MiB instead of a percentage"
        )
    return TEMPLATE_PREFIX + hashlib.sha256(content.encode()).hexdigest()[:_NAME_DIGITS]


def is_template_name(name: object) -> bool:
    """Whether a template of this name may be one of content; only its prefix is looked at."""
    return isinstance(name, str) and name.startswith(TEMPLATE_PREFIX)


def _one_card(selectors: Sequence[str], amounts: dict[str, str]) -> Spec:
    """One card of our class; its selectors, and a request without amounts takes all of it."""
    card: Spec = {
        "deviceClassName": DRIVER_NAME,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    if selectors:
        card["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    if amounts:
        card["capacity"] = {"requests": amounts}
    return card


def _amounts(need: CardNeed, memory_mib: int) -> dict[str, str]:
    """What is not named is the card's default, which is all of it."""
    amounts = {}
    if not (need.is_all_memory and need.cores_percent == FULL_PERCENT):
        amounts[CORES] = str(need.cores_percent)
    if not need.is_all_memory:
        amounts[MEMORY] = format_binary(memory_mib * MIB)
    return amounts


def _memory_selector(comparison: str, memory_bytes: int) -> str:
    amount = json.dumps(format_binary(memory_bytes))
    return (
        f"{json.dumps(MEMORY)} in {_CAPACITY} && "
        f"{_CAPACITY}.{MEMORY}.compareTo(quantity({amount})) {comparison} 0"
    )


def _constraints(requests: CardRequests, wishes: SchedulingWishes) -> list[Spec]:
    """Several cards of a container are different cards; count N of one request would not say so.

    Raises PodRefused for more constraints than a claim takes.
    """
    names = tuple(request.name for request in requests.requests)
    different = (names,) if wishes.distinct_cards else requests.different
    near = requests.different if wishes.one_pcie_root else ()
    constraints = [
        *({"requests": list(group), "matchAttribute": UUID_ATTRIBUTE} for group in requests.same),
        *({"requests": list(group), "distinctAttribute": UUID_ATTRIBUTE} for group in different),
        *({"requests": list(group), "matchAttribute": PCIE_ROOT_ATTRIBUTE} for group in near),
    ]
    if len(constraints) > MAX_CONSTRAINTS:
        raise PodRefused(
            f"the pod's containers need {len(constraints)} rules on which cards are different ones "
            f"and which are one, and a claim takes {MAX_CONSTRAINTS}; use fewer GPU containers"
        )
    return constraints


def _config(requests: Iterable[CardRequest]) -> list[Spec]:
    """One entry for all requests with the same parameters."""
    groups: dict[SliceParameters, list[str]] = {}
    for request in requests:
        if request.parameters != UNSAID:
            groups.setdefault(request.parameters, []).append(request.name)
    return [
        {
            "requests": names,
            "opaque": {"driver": DRIVER_NAME, "parameters": parameters.as_object()},
        }
        for parameters, names in groups.items()
    ]
