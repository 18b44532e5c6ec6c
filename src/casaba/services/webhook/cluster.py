"""What the cluster shows of cards, classes and quotas, followed all the time."""

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Generic, TypeVar

from casaba.kube import (
    DEVICE_CLASSES,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    Informer,
    KubeClient,
    Synced,
)
from casaba.policy.convert import ClusterFacts
from casaba.services.webhook.facts import QuotaLimits, SellingClass, cards_of, limited_by, sold_as
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import DeviceClass, ResourceSlice

T = TypeVar("T")

_CLASSES = DEVICE_CLASSES.decoded_as(SellingClass)
_QUOTAS = RESOURCE_QUOTAS.decoded_as(QuotaLimits)
_BY_NAMESPACE = "namespace"

_NAMESPACES = 1000
"""So many namespaces' facts are kept."""


class Followed(Generic[T]):
    """An informer with what its readers want to know beside the objects."""

    def __init__(self, informer: Informer[T]) -> None:
        self.informer = informer
        self.synced = False
        """Whether a complete list was there once."""
        self.changes = 0
        """Goes up with each change."""

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with self.informer:
            async for event in self.informer:
                self.synced = self.synced or isinstance(event, Synced)
                self.changes += 1


class ClusterView:
    """The objects that decisions need; `followers` have to run meanwhile."""

    def __init__(self, client: KubeClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        ours = f"spec.driver={DRIVER_NAME}"
        self._slices = Followed(Informer(client, RESOURCE_SLICES, field_selector=ours))
        self._classes = Followed(Informer(client, _CLASSES))
        self._quotas = Followed(
            Informer(client, _QUOTAS, indexes={_BY_NAMESPACE: lambda it: (it.metadata.namespace,)})
        )
        self._clock = clock
        self._away_since_s: float | None = None
        self._facts: dict[str, ClusterFacts] = {}
        self._facts_before: dict[str, ClusterFacts] = {}
        self._facts_as_of = (-1, -1, -1)

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What follows the API server; each runs until cancelled."""
        return (self._slices.run(), self._classes.run(), self._quotas.run())

    @property
    def slices(self) -> Iterable[ResourceSlice]:
        """Of our driver, all that there are now."""
        return tuple(self._slices.informer.objects.values())

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """By name."""
        return {key.name: it for key, it in self._classes.informer.objects.items()}

    def missing(self) -> str | None:
        """What has not been read yet, without which nothing can be decided; None if all is there.

        Quotas only make warnings; for them no pod has to wait.
        """
        if not self._slices.synced:
            return "the ResourceSlices have not been read yet"
        return None if self._classes.synced else "the DeviceClasses have not been read yet"

    def away_for_s(self) -> float:
        """How long, in seconds, there has been no contact to the API server, by who asks this."""
        failures = (self._slices.informer.failure, self._classes.informer.failure)
        if any(failure is None for failure in failures):
            self._away_since_s = None
            return 0.0
        if self._away_since_s is None:
            self._away_since_s = self._clock()
        return self._clock() - self._away_since_s

    def facts(self, namespace: str) -> ClusterFacts:
        """What there is now, for a pod of a namespace; counted once for many pods.

        What is as it was before is the same value, whatever else of a quota or slice has changed.
        """
        as_of = (self._slices.changes, self._classes.changes, self._quotas.changes)
        if as_of != self._facts_as_of or len(self._facts) >= _NAMESPACES:
            self._facts_as_of = as_of
            self._facts_before, self._facts = self._facts, {}
        if (facts := self._facts.get(namespace)) is None:
            facts, before = self._counted(namespace), self._facts_before.get(namespace)
            facts = self._facts[namespace] = before if before == facts else facts
        return facts

    def _counted(self, namespace: str) -> ClusterFacts:
        quotas = self._quotas.informer.by_index(_BY_NAMESPACE, namespace)
        return ClusterFacts(
            cards=cards_of(self.slices),
            quota_resources=limited_by(quotas),
            extended_resources=sold_as(self._classes.informer.objects.values()),
        )
