"""Keeps the leader's label on our own pod, and off the pods of former leaders."""

import asyncio
import logging
from typing import Any

from casaba.kube import PODS, Informer, KubeClient, KubeError, NotFound, ObjectKey
from casaba.policy.leadership import LEADS, TRUE, plan_labels
from casaba.wire.kubernetes import Pod

log = logging.getLogger(__name__)

TAKE_OFF_S = 2.0
"""So long it may take at the end: less than others wait for the Lease."""

_PODS = PODS.decoded_as(dict)


class LeaderLabel:
    """Writes through the status subresource: the right to do that changes no pod's containers."""

    def __init__(
        self,
        client: KubeClient,
        pods: Informer[Pod],
        *,
        namespace: str,
        pod_name: str,
        check_s: float,
    ) -> None:
        self._client = client
        self._pods = pods
        self._namespace = namespace
        self._pod_name = pod_name
        self._check_s = check_s

    async def run(self) -> None:
        """Never returns. If cancelled: our label is taken off, if that is quickly done."""
        try:
            while True:
                await self._keep()
                await asyncio.sleep(self._check_s)
        finally:
            await self._take_off_own()

    async def _keep(self) -> None:
        plan = plan_labels(self._pods.objects.values(), self._namespace, self._pod_name)
        for pod in plan.take:
            await self._patch(pod, None)
        for pod in plan.give:
            await self._patch(pod, TRUE)

    async def _take_off_own(self) -> None:
        pod = self._pods.objects.get(ObjectKey(self._namespace, self._pod_name))
        if pod is None:
            return
        try:
            async with asyncio.timeout(TAKE_OFF_S):
                await self._patch(pod, None)
        except TimeoutError:
            log.warning("leader.label_left", extra={"pod": self._pod_name})

    async def _patch(self, pod: Pod, value: str | None) -> None:
        patch: dict[str, Any] = {"metadata": {"labels": {LEADS: value}}}
        try:
            await self._client.patch(
                _PODS,
                pod.metadata.name,
                patch,
                namespace=self._namespace,
                subresource="status",
                uid=pod.metadata.uid,
            )
        except NotFound:
            return
        except KubeError as error:
            told = {"pod": pod.metadata.name, "reason": str(error)}
            log.warning("leader.not_labelled", extra=told)
        else:
            log.info("leader.labelled", extra={"pod": pod.metadata.name, "leads": value == TRUE})
