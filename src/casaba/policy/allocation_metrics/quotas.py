"""ResourceQuotas that concern cards, and what namespaces have of them.

Quotas on the classic resources hold nobody back in this mode: a converted pod does not ask for
them any more. They are told all the same, with what the namespace's claims have, in the classic
units. Of quotas on claims and on devices of our class the API server keeps the account.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from casaba.errors import InvalidInput
from casaba.model.quantity import MIB, quantity
from casaba.policy.allocation_metrics.account import Account
from casaba.policy.allocation_metrics.families import family
from casaba.policy.hami_build import ZONE
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.exposition import Family

KEPT_BY_SERVER = (
    f"{DRIVER_NAME}.deviceclass.resource.k8s.io/devices",
    f"requests.deviceclass.resource.kubernetes.io/{DRIVER_NAME}",
    "count/resourceclaims.resource.k8s.io",
)
"""Keys of a quota whose use the API server tells."""

_PREFIXES = ("requests.", "limits.")


@dataclass(frozen=True, kw_only=True)
class ResourceNames:
    """The classic resources."""

    cards: str
    memory: str
    """In MiB."""
    cores: str
    """In percent of a card."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A ResourceQuota: quantities by resource."""

    namespace: str
    hard: Mapping[str, str]
    used: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class QuotaLine:
    """One limit of a namespace: of several quotas on a resource the lowest."""

    namespace: str
    name: str
    limit: float
    used: float


def quota_lines(
    quotas: Iterable[Quota], account: Account, names: ResourceNames
) -> tuple[QuotaLine, ...]:
    """The limits that concern cards, by namespace and resource."""
    had = _had(account, names)
    lines: dict[tuple[str, str], QuotaLine] = {}
    for quota in quotas:
        for line in _lines(quota, had, names):
            key = (line.namespace, line.name)
            if key not in lines or line.limit < lines[key].limit:
                lines[key] = line
    return tuple(lines[key] for key in sorted(lines))


def quota_families(lines: Iterable[QuotaLine], *, legacy: bool) -> tuple[Family, ...]:
    """The scheduler's names for quotas, with the old one if `legacy`."""
    lines = tuple(lines)
    used = [((ZONE, x.namespace, x.name, _number(x.limit)), x.used) for x in lines]
    limits = [((ZONE, x.namespace, x.name), x.limit) for x in lines]
    about = "What a namespace has of a resource with a quota, in the resource's unit"
    families = (
        family("hami_resource_quota_used", about, "zone namespace quota_name limit", used),
        family(
            "hami_resource_quota_limit",
            "The quota, in the resource's unit",
            "zone namespace quota_name",
            limits,
        ),
    )
    old = family("QuotaUsed", about, "zone quotanamespace quotaName limit", used)
    return (*families, old) if legacy else families


def _had(account: Account, names: ResourceNames) -> Counter[tuple[str, str]]:
    """By namespace and classic resource; a claim counts once, whoever shares it."""
    had: Counter[tuple[str, str]] = Counter()
    for share in account.shares:
        had[share.namespace, names.cards] += 1
        had[share.namespace, names.memory] += -(-share.memory_bytes // MIB)
        had[share.namespace, names.cores] += share.cores
    return had


def _lines(
    quota: Quota, had: Mapping[tuple[str, str], int], names: ResourceNames
) -> Iterator[QuotaLine]:
    classic = (names.cards, names.memory, names.cores)
    for key, text in quota.hard.items():
        name = next((key.removeprefix(p) for p in _PREFIXES if key.startswith(p)), key)
        limit = _value(text)
        if limit is None:
            continue
        if name in classic:
            used = float(had.get((quota.namespace, name), 0))
        elif key in KEPT_BY_SERVER:
            name, used = key, _value(quota.used.get(key, "0")) or 0.0
        else:
            continue
        yield QuotaLine(namespace=quota.namespace, name=name, limit=limit, used=used)


def _value(text: str) -> float | None:
    try:
        return quantity(text).nanos / 10**9
    except InvalidInput:
        return None


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)
