"""The webhook from start to end; reads like section 2 of the design."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from casaba.aiokit import running_beside
from casaba.kube import KubeClient, load_config
from casaba.net.certificate_pair import CertificateFiles
from casaba.net.http_metrics import MetricsServer
from casaba.net.tls_listener import TlsListener
from casaba.services.webhook.claims import ClaimJudge
from casaba.services.webhook.cluster import ClusterView, Followed
from casaba.services.webhook.metrics import WebhookMetrics
from casaba.services.webhook.pods import PodJudge
from casaba.services.webhook.readiness import Readiness
from casaba.services.webhook.reviews import ReviewDoor, ReviewLimits
from casaba.services.webhook.templates import TemplateKeeper, made_templates
from casaba.services.webhook.workbench import Workbench
from casaba.settings.webhook import WebhookSettings

log = logging.getLogger(__name__)

FIELD_MANAGER = "casaba-webhook"

_READINESS_LOOK_S = 0.25

_PATIENCE_S = 2.0
"""How long the API server may ask us to wait in the middle of its own question."""


@dataclass(frozen=True, kw_only=True)
class RunningWebhook:
    """A webhook that takes reviews."""

    port: int
    """Of HTTPS."""
    metrics_port: int
    readiness: Readiness
    door: ReviewDoor

    def drain(self) -> None:
        """Be not ready from now on, and let clients go while they are still answered."""
        self.readiness.draining = True
        self.door.says_farewell = True


async def run_webhook(settings: WebhookSettings) -> None:
    """Answer reviews until cancelled, and then a while longer; cancelled again, end at once.

    Raises CasabaError when it can't listen or has no way to the API server.
    """
    async with serving_webhook(settings) as webhook:
        log.info("webhook.listening", extra={"port": webhook.port})
        try:
            await _tell_readiness(webhook)
        finally:
            webhook.drain()
            log.info("webhook.draining", extra={"seconds": settings.drain_s})
            await asyncio.sleep(settings.drain_s)


async def _tell_readiness(webhook: RunningWebhook) -> None:
    """Log each change; never returns."""
    told: str | None = "nobody was told yet"
    while True:
        if (reason := webhook.readiness.reason()) != told:
            told = reason
            if reason is None:
                log.info("webhook.ready", extra={"port": webhook.port})
            else:
                log.warning("webhook.not_ready", extra={"reason": reason})
        await asyncio.sleep(_READINESS_LOOK_S)


@asynccontextmanager
async def serving_webhook(settings: WebhookSettings) -> AsyncIterator[RunningWebhook]:
    """A webhook that serves as long as the block runs; requests in work are finished at its end."""
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry)
    client = KubeClient(
        load_config(settings.kubeconfig),
        field_manager=FIELD_MANAGER,
        request_timeout_s=settings.review_limit_s,
        patience_s=_PATIENCE_S,
    )
    bench = Workbench(aside_above_bytes=settings.aside_above_bytes)
    async with client, bench:
        cluster, templates = ClusterView(client), Followed(made_templates(client))
        keeper = TemplateKeeper(
            client, templates.informer, metrics, stamp_age_s=settings.stamp_age_s
        )
        pods = PodJudge(cluster, keeper, bench, settings.conversion)
        door = _door(settings, pods, ClaimJudge(cluster, bench), metrics)
        listener = _listener(settings, door, metrics)
        readiness = Readiness(listener, cluster, patience_s=settings.contact_patience_s)
        async with (
            MetricsServer(settings.metrics_address, registry, is_ready=readiness.reason) as told,
            running_beside(*cluster.followers(), templates.run(), listener.follow_files()),
            listener,
        ):
            yield RunningWebhook(
                port=listener.port, metrics_port=told.port, readiness=readiness, door=door
            )


def _door(
    settings: WebhookSettings, pods: PodJudge, claims: ClaimJudge, metrics: WebhookMetrics
) -> ReviewDoor:
    judges = {"/mutate": pods.judge, "/mutate-update": pods.judge, "/validate": claims.judge}
    limits = ReviewLimits(time_s=settings.review_limit_s, body_bytes=settings.body_limit_bytes)
    return ReviewDoor(judges, limits, metrics)


def _listener(settings: WebhookSettings, door: ReviewDoor, metrics: WebhookMetrics) -> TlsListener:
    return TlsListener(
        settings.address,
        door.app,
        CertificateFiles(folder=settings.certificate_dir),
        metrics,
        minimum_version=settings.tls_minimum,
        look_every_s=settings.certificate_check_s,
        shutdown_s=settings.review_limit_s,
    )
