"""The controller's series, counted when they are asked for."""

import platform
from collections.abc import Callable, Iterable, Iterator

from casaba import __version__
from casaba.policy.allocation_metrics import (
    ResourceNames,
    account,
    casaba_families,
    hami_dra_families,
    hami_families,
    legacy_dra_families,
    legacy_scheduler_families,
    quota_families,
    quota_lines,
)
from casaba.policy.hami_build import build_family
from casaba.services.controllers.certificates import CertificateKeeper
from casaba.services.controllers.cluster import ClusterView
from casaba.services.controllers.collector import TemplateCollector
from casaba.settings.controllers import AllocationMetricsSettings
from casaba.wire.exposition import Family, Sample


class ControllerMetrics:
    """What this replica tells.

    What is allocated comes from the caches, and from the leader only, so that no sum is doubled.
    """

    def __init__(
        self,
        cluster: ClusterView,
        templates: TemplateCollector,
        certificates: CertificateKeeper | None,
        settings: AllocationMetricsSettings,
        *,
        leads: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._templates = templates
        self._certificates = certificates
        self._settings = settings
        self._leads = leads

    async def families(self) -> Iterable[Family]:
        """Everything of this moment."""
        return (*self._own(), *(self._allocation() if self._tells_allocation() else ()))

    def _tells_allocation(self) -> bool:
        return self._leads() and self._cluster.missing() is None

    def _allocation(self) -> Iterator[Family]:
        """Joined once, told under every name."""
        cluster, settings = self._cluster, self._settings
        slices, claims = cluster.slices.objects.values(), cluster.claims.objects.values()
        found = account(slices, claims, cluster.pod, cluster.pods.objects.values())
        lines = quota_lines(cluster.quotas(), found, _names(settings))
        yield from hami_families(found)
        yield from quota_families(lines, legacy=settings.legacy_scheduler_names)
        yield from hami_dra_families(found)
        if settings.legacy_dra_names:
            yield from legacy_dra_families(found)
        if settings.legacy_scheduler_names:
            yield from legacy_scheduler_families(found, without_cards=settings.legacy_dra_names)
        yield from casaba_families(found)

    def _own(self) -> Iterator[Family]:
        yield _gauge(
            "casaba_controller_leader",
            "Whether this replica leads: 1 or 0",
            [((), float(self._leads()))],
        )
        yield _counter(
            "casaba_templates_collected",
            "ResourceClaimTemplates deleted because no pod uses them any more",
            self._templates.deleted,
        )
        yield _counter(
            "casaba_template_collection_errors",
            "Requests of the collection that failed",
            self._templates.failed,
        )
        yield build_family(
            __version__,
            python=platform.python_version(),
            system=platform.system(),
            machine=platform.machine(),
        )
        if self._certificates is not None and self._leads():
            yield _gauge(
                "casaba_controller_certificate_expiry_timestamp_seconds",
                "When the webhook's authority and serving certificate end",
                [((name,), at_s) for name, at_s in self._certificates.expiries.items()],
                "certificate",
            )


def _gauge(name: str, about: str, samples: list[Sample], *labels: str) -> Family:
    return Family(name=name, kind="gauge", help=about, labels=labels, samples=samples)


def _counter(name: str, about: str, value: int) -> Family:
    return Family(name=name, kind="counter", help=about, labels=(), samples=[((), value)])


def _names(settings: AllocationMetricsSettings) -> ResourceNames:
    return ResourceNames(
        cards=settings.resource_name,
        memory=settings.memory_resource_name,
        cores=settings.cores_resource_name,
    )
