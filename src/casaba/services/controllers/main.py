"""The controller from start to end."""

import logging
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from casaba.errors import InvalidInput
from casaba.kube import (
    Election,
    ElectionTimes,
    EventRecorder,
    KubeClient,
    LeadershipLost,
    load_config,
)
from casaba.net.http_metrics import MetricsServer
from casaba.services.controllers.certificates import CertificateKeeper
from casaba.services.controllers.cluster import ClusterView
from casaba.services.controllers.collector import TemplateCollector
from casaba.services.controllers.leader_label import LeaderLabel
from casaba.services.controllers.metrics import ControllerMetrics
from casaba.services.controllers.trust import TrustKeeper
from casaba.settings.controllers import ControllerSettings

log = logging.getLogger(__name__)

COMPONENT = "casaba-controller"
"""Who writes, as events and managed fields tell."""


async def run_controller(
    settings: ControllerSettings, *, listening: Callable[[int], None] = lambda _: None
) -> None:
    """Stand for leader, lead, and stand again, until cancelled.

    `listening` hears the port of the metrics. Raises CasabaError when the cluster can't be
    reached as configured, or the address for the metrics can't be had.
    """
    async with KubeClient(load_config(settings.kubeconfig), field_manager=COMPONENT) as client:
        parts = _assembled(client, settings)
        server = MetricsServer(
            settings.metrics_address,
            CollectorRegistry(),
            is_ready=parts.cluster.missing,
            families=parts.metrics(settings).families,
        )
        async with server, TaskGroup() as group:
            listening(server.port)
            group.create_task(parts.cluster.run())
            group.create_task(parts.events.run())
            group.create_task(_stand_for_ever(client, settings, parts))


async def make_certificates_once(settings: ControllerSettings) -> None:
    """Make what a webhook needs to serve, and let those that there are trust it; for a Job.

    Raises InvalidInput where certificates are none of our business; KubeError.
    """
    if settings.certificates is None:
        raise InvalidInput("certificates are turned off by --no-certificates; leave one flag out")
    async with KubeClient(load_config(settings.kubeconfig), field_manager=COMPONENT) as client:
        await CertificateKeeper(client, settings.namespace, settings.certificates).run_once()


class Office:
    """Whether we lead."""

    def __init__(self) -> None:
        self._held = False

    def is_held(self) -> bool:
        """Now."""
        return self._held

    async def hold(self, work: Callable[[], Awaitable[None]]) -> None:
        """Lead while the work goes on."""
        self._held = True
        try:
            await work()
        finally:
            self._held = False


@dataclass(frozen=True, kw_only=True)
class _Parts:
    cluster: ClusterView
    office: Office
    events: EventRecorder
    templates: TemplateCollector
    certificates: CertificateKeeper | None
    trust: TrustKeeper | None
    label: LeaderLabel | None

    async def lead(self) -> None:
        """Everything that only one may do. Never returns."""
        async with TaskGroup() as group:
            if self.label is not None:
                group.create_task(self.label.run())
            if self.certificates is not None:
                group.create_task(self.certificates.run())
            if self.trust is not None:
                group.create_task(self.trust.run())
            group.create_task(self._collect_templates())

    def metrics(self, settings: ControllerSettings) -> ControllerMetrics:
        """What is told of all this."""
        return ControllerMetrics(
            self.cluster,
            self.templates,
            self.certificates,
            settings.allocation_metrics,
            leads=self.office.is_held,
        )

    async def _collect_templates(self) -> None:
        """What was not read yet must not look like not being there."""
        await self.cluster.read()
        await self.templates.run()


def _assembled(client: KubeClient, settings: ControllerSettings) -> _Parts:
    cluster, events = ClusterView(client), EventRecorder(client, component=COMPONENT)
    certificates = settings.certificates
    return _Parts(
        cluster=cluster,
        office=Office(),
        events=events,
        templates=TemplateCollector(client, cluster.templates, cluster.pods, settings.collection),
        certificates=CertificateKeeper(client, settings.namespace, certificates, events=events)
        if certificates
        else None,
        trust=TrustKeeper(client, settings.namespace, settings.trust) if settings.trust else None,
        label=LeaderLabel(
            client,
            cluster.pods,
            namespace=settings.namespace,
            pod_name=settings.pod_name,
            check_s=settings.label_check_s,
        )
        if settings.pod_name
        else None,
    )


async def _stand_for_ever(client: KubeClient, settings: ControllerSettings, parts: _Parts) -> None:
    """Never returns. A leader that was cut off ends its work and stands again."""
    times = ElectionTimes(
        lease_duration_s=settings.lease_duration_s,
        renew_deadline_s=settings.renew_deadline_s,
        retry_period_s=settings.retry_period_s,
    )
    while True:
        election = Election(
            client, namespace=settings.namespace, name=settings.lease_name, times=times
        )
        try:
            await election.lead(lambda: parts.office.hold(parts.lead))
        except LeadershipLost as error:
            log.warning("controller.leads_no_more", extra={"reason": str(error)})
