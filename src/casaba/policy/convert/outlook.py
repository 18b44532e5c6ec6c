"""What a person should know of a converted pod: what will keep it Pending, and who else counts."""

from collections.abc import Iterable, Iterator, Sequence

from casaba.model.quantity import MIB
from casaba.policy.convert.card_choice import CardChoice
from casaba.policy.convert.demands import Demand
from casaba.policy.convert.facts import ClusterFacts, VisibleCards
from casaba.policy.convert.needs import FULL_PERCENT, CardNeed
from casaba.policy.convert.pods import described
from casaba.policy.convert.refusals import PodRefused, warning
from casaba.policy.convert.scheduling_wishes import GPU_POLICY, MUTEX
from casaba.settings.conversion import ConversionSettings
from casaba.settings.host_paths import DRIVER_NAME

_QUOTA_PREFIXES = ("requests.", "limits.", "")


def outlook(
    demands: Sequence[Demand],
    needs: Sequence[CardNeed],
    choice: CardChoice,
    cards: VisibleCards,
    facts: ClusterFacts,
    settings: ConversionSettings,
) -> tuple[str, ...]:
    """Warnings about cards that are not there now; `needs` are those of the requests.

    Nodes join late, and a kubelet that starts takes its slices away for a while, so such a pod is
    admitted. Raises PodRefused for memory that no visible card has, if the settings say so.
    """
    if not facts.visible:
        told = ["no card is visible now: the pod is Pending until a node offers one"]
    elif not cards:
        told = [f"no visible card is allowed by {choice}: the pod is Pending until one joins"]
    else:
        told = list(_shortages(demands, cards, settings)) or list(_overload(needs, cards))
    return tuple(dict.fromkeys(warning(text) for text in told))


def _shortages(
    demands: Iterable[Demand], cards: VisibleCards, settings: ConversionSettings
) -> Iterator[str]:
    for demand in demands:
        memory = demand.need.memory_bytes
        if memory > cards.largest_bytes:
            text = (
                f"{described(demand.container)}: {demand.need.memory_mib} MiB is more than the "
                f"largest visible card that it may have ({cards.largest_bytes // MIB} MiB)"
            )
            if settings.refuse_oversized:
                raise PodRefused(f"{text}; ask for less {settings.memory_resource}")
            yield f"{text}: the pod is Pending until a larger one joins"
        elif demand.count > (most := cards.most_on_one_node(memory)):
            yield (
                f"{described(demand.container)}: {demand.count} cards, but the most that a node "
                f"has of them is {most}: the pod is Pending until a node with more joins"
            )


def _overload(needs: Sequence[CardNeed], cards: VisibleCards) -> Iterator[str]:
    """What all together need of the cards of one node, as far as it is no percentage."""
    most = cards.most_on_one_node(0)
    mib = sum([need.memory_mib for need in needs])
    if mib * MIB > most * cards.largest_bytes and not any(need.memory_percent for need in needs):
        yield (
            f"at one time the pod needs {mib} MiB, more than the cards of a node have "
            f"({most} of up to {cards.largest_bytes // MIB} MiB): it is Pending until one with "
            "more joins"
        )
    cores = sum([need.cores_percent for need in needs])
    if cores > most * FULL_PERCENT:
        yield (
            f"at one time the pod needs {cores} cores, and a node has up to {most} cards of "
            f"{FULL_PERCENT}: it is Pending until one with more joins"
        )


def shared_cards(demands: Iterable[Demand], settings: ConversionSettings) -> tuple[str, ...]:
    """Warnings about all cores of a part of a card: that is a card of its own for HAMi only."""
    return tuple(
        warning(
            f"{described(one.container)}: all cores and a part of the memory: others may have the "
            f"rest; for a card of its own leave out {settings.memory_resource} or set "
            f"{GPU_POLICY}: {MUTEX}"
        )
        for one in demands
        if one.need.cores_percent == FULL_PERCENT and not one.need.is_all_memory
    )


def other_accounts(
    names: Sequence[str], facts: ClusterFacts, settings: ConversionSettings
) -> tuple[str, ...]:
    """Quotas and classes that speak of the resources that are taken away."""
    quotas = [prefix + name for name in names for prefix in _QUOTA_PREFIXES]
    told = [
        f"the namespace's quota on {quota} does not count this pod: it uses a claim; "
        f"limit {DRIVER_NAME}.deviceclass.resource.k8s.io/devices"
        for quota in quotas
        if quota in facts.quota_resources
    ]
    if settings.count_resource in facts.extended_resources:
        told.append(
            f"a DeviceClass has extendedResourceName {settings.count_resource}: pods that are not "
            "converted would get whole cards by it; remove it from the class"
        )
    return tuple(warning(text) for text in told)
