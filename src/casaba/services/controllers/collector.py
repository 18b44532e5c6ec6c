"""Deletes the webhook's templates that nobody uses any more, one by one."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from casaba.kube import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    Conflict,
    Informer,
    KubeClient,
    KubeError,
    NotFound,
    ObjectKey,
)
from casaba.policy.collection import (
    CollectionPlan,
    MadeTemplate,
    TemplateName,
    made_template,
    names_of_pod,
    plan_collection,
)
from casaba.services.controllers.forms import ClaimTemplate
from casaba.settings.controllers import CollectionSettings
from casaba.wire.kubernetes import Pod

log = logging.getLogger(__name__)

_Version = tuple[str, str]
"""UID and resource version."""


class TemplateCollector:
    """Decides by the informers' caches; before it deletes it asks the server for the pods.

    A cache may be behind, so the pods of a namespace are listed anew. One that is admitted after
    that has renewed its template, and the deletion, which names the version, is refused.
    """

    def __init__(
        self,
        client: KubeClient,
        templates: Informer[ClaimTemplate],
        pods: Informer[Pod],
        settings: CollectionSettings,
        *,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        self._templates = templates
        self._pods = pods
        self._settings = settings
        self._utc_now = utc_now
        self._monotonic_s = monotonic_s or asyncio.get_running_loop().time
        self._known: dict[ObjectKey, tuple[_Version, float]] = {}
        self.deleted = 0
        """Templates that were deleted."""
        self.failed = 0
        """Deletions, and looks before them, that the server refused."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            wait_s = await self.collect()
            await asyncio.sleep(min(wait_s, self._settings.check_s))

    async def collect(self) -> float:
        """Look once and delete what may go; in how many seconds the next is due."""
        templates = self._made()
        plan = self._plan(templates, _in_use(self._pods.objects.values()))
        by_namespace: dict[str, list[MadeTemplate]] = defaultdict(list)
        for template in plan.delete:
            by_namespace[template.name.namespace].append(template)
        for namespace, unused in by_namespace.items():
            await self._collect_from(namespace, unused)
        if plan.look_again_in_s is None:
            return self._settings.check_s
        return plan.look_again_in_s

    def _plan(
        self, templates: Iterable[MadeTemplate], in_use: frozenset[TemplateName]
    ) -> CollectionPlan:
        return plan_collection(
            templates,
            in_use,
            self._utc_now(),
            period_s=self._settings.period_s,
            settle_s=self._settings.settle_s,
        )

    def _made(self) -> list[MadeTemplate]:
        now_s = self._monotonic_s()
        made = []
        known: dict[ObjectKey, tuple[_Version, float]] = {}
        for key, object_ in self._templates.objects.items():
            version = (object_.metadata.uid, object_.metadata.resource_version)
            before = self._known.get(key)
            since_s = before[1] if before and before[0] == version else now_s
            known[key] = (version, since_s)
            if template := made_template(object_.metadata, now_s - since_s):
                made.append(template)
        self._known = known
        return made

    async def _collect_from(self, namespace: str, unused: list[MadeTemplate]) -> None:
        try:
            pods = await self._client.list(PODS, namespace=namespace)
        except KubeError as error:
            self.failed += 1
            told = {"namespace": namespace, "reason": str(error)}
            log.warning("template.pods_not_listed", extra=told)
            return
        for template in self._plan(unused, _in_use(pods.items)).delete:
            await self._delete(template)

    async def _delete(self, template: MadeTemplate) -> None:
        told = {"namespace": template.name.namespace, "template": template.name.name}
        try:
            await self._client.delete(
                RESOURCE_CLAIM_TEMPLATES,
                template.name.name,
                namespace=template.name.namespace,
                uid=template.uid,
                resource_version=template.resource_version,
            )
        except (Conflict, NotFound):
            log.info("template.kept", extra={**told, "why": "it was renewed or is gone"})
        except KubeError as error:
            self.failed += 1
            log.warning("template.not_deleted", extra={**told, "reason": str(error)})
        else:
            self.deleted += 1
            used_at = template.used_at.isoformat() if template.used_at else "unknown"
            log.info("template.deleted", extra={**told, "last_used": used_at})


def _in_use(pods: Iterable[Pod]) -> frozenset[TemplateName]:
    return frozenset(name for pod in pods for name in names_of_pod(pod))
