"""What a container asks of each of its cards, with the classic defaults."""

from collections.abc import Mapping
from dataclasses import dataclass

from casaba.model.slice_parameters import HIGH_PRIORITY, LOW_PRIORITY, SliceParameters
from casaba.policy.convert.amounts import Amount
from casaba.policy.convert.environment import core_policy, environment_warnings
from casaba.policy.convert.needs import FULL_PERCENT, CardNeed
from casaba.policy.convert.pods import Container, Role, described
from casaba.policy.convert.refusals import FORBIDDEN, PodRefused, shown, warning
from casaba.settings.conversion import ConversionSettings

MAX_CARDS = 32
"""The API server's limit of requests, and of results, of one claim."""

_LARGEST_MIB = 1 << 24
"""16 TiB: more than any card; who asks for more has counted bytes."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What one container asks for."""

    container: Container
    count: int
    """Different cards."""
    need: CardNeed
    """Of each card."""
    parameters: SliceParameters
    warnings: tuple[str, ...] = ()

    @property
    def is_init(self) -> bool:
        """Whether it has ended when the containers start."""
        return self.container.role is Role.INIT


def demand(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> Demand | None:
    """What a container with these amounts asks for; None for no card at all. Raises PodRefused."""
    if not any(name in asked for name in settings.triggers):
        return None
    if container.is_privileged:
        raise PodRefused(
            f"{described(container)}: it is privileged and would see whole cards whatever it is "
            "given; leave out securityContext.privileged or the GPU resources",
            code=FORBIDDEN,
        )
    return Demand(
        container=container,
        count=_count(container, asked, settings),
        need=_need(container, asked, settings),
        parameters=_parameters(container, asked, settings),
        warnings=_warnings(container, asked, settings),
    )


def _count(container: Container, asked: Mapping[str, Amount], settings: ConversionSettings) -> int:
    """A container that asks for memory or cores only gets the default number of cards."""
    name = settings.count_resource
    count = asked[name].value if name in asked else settings.default_count
    if count < 1:
        fix = "ask for 1 or more" if name not in asked else "leave it out, or ask for 1 or more"
        raise PodRefused(f"{described(container)}: {name}: {count} cards are no cards; {fix}")
    if count > MAX_CARDS:
        raise PodRefused(
            f"{described(container)}: {name}: {shown(count)} is more than the {MAX_CARDS} cards "
            "that one pod can have; ask for fewer, in several pods"
        )
    return count


def _need(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> CardNeed:
    """Without a word on a part of the memory or on cores all cores are meant, as for HAMi.

    Its webhook decides that before it looks at the default of the memory
    (defaultExclusiveCoreIfNeeded).
    """
    mib, percent = _memory(container, asked, settings)
    if settings.cores_resource in asked:
        cores = _cores(container, asked[settings.cores_resource], settings.cores_resource)
    elif percent == FULL_PERCENT or not _asks_memory(asked, settings):
        cores = FULL_PERCENT
    else:
        cores = settings.default_cores_percent
    return CardNeed(memory_mib=mib, memory_percent=percent, cores_percent=cores)


def _memory(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> tuple[int, int]:
    """(MiB, percent), one of which is zero; zero is as good as not asked, as in the classic one."""
    memory, percentage = settings.memory_resource, settings.percentage_resource
    mib = _mib(container, asked[memory], settings) if memory in asked else 0
    percent = _percent(container, asked[percentage], settings) if percentage in asked else 0
    if mib and percent:
        raise PodRefused(
            f"{described(container)}: {memory}: {asked[memory].text} and {percentage}: "
            f"{asked[percentage].text} stand together; leave out one of them"
        )
    if not mib and not percent:
        mib = settings.default_memory_mib
        percent = 0 if mib else FULL_PERCENT
    return mib, percent


def _mib(container: Container, amount: Amount, settings: ConversionSettings) -> int:
    mib = amount.value * settings.memory_factor
    if amount.looks_like_bytes or mib > _LARGEST_MIB:
        unit = "MiB" if settings.memory_factor == 1 else f"units of {settings.memory_factor} MiB"
        fitting = -(-amount.mib_of_bytes // settings.memory_factor)
        raise PodRefused(
            f"{described(container)}: {settings.memory_resource}: {amount.text} is too much, since "
            f"it counts {unit}, not bytes; write {fitting} for {amount.text} bytes"
        )
    return mib


def _percent(container: Container, amount: Amount, settings: ConversionSettings) -> int:
    if amount.value > FULL_PERCENT:
        raise PodRefused(
            f"{described(container)}: {settings.percentage_resource}: {amount.text} is more than "
            f"100 percent of a card; ask for 1 to 100, or for more cards with "
            f"{settings.count_resource}"
        )
    return amount.value


def _cores(container: Container, amount: Amount, name: str) -> int:
    if amount.value > FULL_PERCENT:
        raise PodRefused(
            f"{described(container)}: {name}: {amount.text} is more than 100 percent of a card's "
            "time; ask for 0 to 100"
        )
    return amount.value


def _parameters(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> SliceParameters:
    return SliceParameters(
        priority=_priority(container, asked, settings),
        core_policy=core_policy(container, settings),
    )


def _priority(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> int | None:
    name = settings.priority_resource
    if name not in asked:
        return None
    if asked[name].value not in (HIGH_PRIORITY, LOW_PRIORITY):
        raise PodRefused(
            f"{described(container)}: {name}: {asked[name].text} is no priority; "
            f"write {HIGH_PRIORITY} for high or {LOW_PRIORITY} for low"
        )
    return asked[name].value


def _warnings(
    container: Container, asked: Mapping[str, Amount], settings: ConversionSettings
) -> tuple[str, ...]:
    told = environment_warnings(container, settings)
    if settings.cores_resource not in asked or _names_memory(asked, settings):
        return told
    return (
        *told,
        warning(
            f"{described(container)}: without {settings.memory_resource} it gets all memory of "
            "the card, and nobody else a share of it; say how much it needs"
        ),
    )


def _asks_memory(asked: Mapping[str, Amount], settings: ConversionSettings) -> bool:
    """Zero is as good as not asked."""
    names = (settings.memory_resource, settings.percentage_resource)
    return any(name in asked and asked[name].value for name in names)


def _names_memory(asked: Mapping[str, Amount], settings: ConversionSettings) -> bool:
    """Whether the memory was chosen, or all cores were asked for and the whole card is meant."""
    return bool(
        _asks_memory(asked, settings)
        or settings.default_memory_mib
        or asked[settings.cores_resource].value == FULL_PERCENT
    )
