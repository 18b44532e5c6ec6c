"""What the controller follows of the cluster, all the time, also while it does not lead."""

import asyncio
from asyncio import TaskGroup
from typing import Any

from casaba.kube import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    Informer,
    KubeClient,
    ObjectKey,
    Synced,
)
from casaba.policy.allocation_metrics import Quota
from casaba.policy.collection import MADE_BY, WEBHOOK
from casaba.services.controllers.forms import ClaimTemplate, ResourceQuota
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Pod


class ClusterView:
    """Caches; `run` has to run meanwhile."""

    def __init__(self, client: KubeClient) -> None:
        templates = RESOURCE_CLAIM_TEMPLATES.decoded_as(ClaimTemplate)
        quotas = RESOURCE_QUOTAS.decoded_as(ResourceQuota)
        ours, made = f"spec.driver={DRIVER_NAME}", f"{MADE_BY}={WEBHOOK}"
        self.slices = Informer(client, RESOURCE_SLICES, field_selector=ours)
        self.claims = Informer(client, RESOURCE_CLAIMS)
        self.pods = Informer(client, PODS)
        self.templates = Informer(client, templates, label_selector=made)
        self._quotas = Informer(client, quotas)
        self._needed: dict[str, Informer[Any]] = {
            "ResourceSlices": self.slices,
            "ResourceClaims": self.claims,
            "Pods": self.pods,
            "ResourceClaimTemplates": self.templates,
        }
        self._unread = set(self._needed)
        self._all_read = asyncio.Event()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with TaskGroup() as group:
            for name, informer in self._needed.items():
                group.create_task(self._follow(informer, name))
            group.create_task(self._follow(self._quotas, "ResourceQuotas"))

    async def _follow(self, informer: Informer[Any], name: str) -> None:
        async with informer:
            async for event in informer:
                if isinstance(event, Synced):
                    self._note_read(name)

    def _note_read(self, name: str) -> None:
        self._unread.discard(name)
        if not self._unread:
            self._all_read.set()

    async def read(self) -> None:
        """Wait until nothing is missing."""
        await self._all_read.wait()

    def pod(self, namespace: str, name: str) -> Pod | None:
        """One pod, if it is there."""
        return self.pods.objects.get(ObjectKey(namespace, name))

    def quotas(self) -> list[Quota]:
        """What namespaces are limited to."""
        return [
            Quota(namespace=quota.metadata.namespace, hard=quota.spec.hard, used=quota.status.used)
            for quota in self._quotas.objects.values()
        ]

    def missing(self) -> str | None:
        """What has not been read yet; None if all is there. Quotas are told when they are read."""
        unread = ", ".join(sorted(self._unread))
        return f"the {unread} have not been read yet" if unread else None
