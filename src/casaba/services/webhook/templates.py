"""ResourceClaimTemplates: there when a pod names them, and stamped, so that they are kept.

Two replicas may do this at once for one template, and the controller may take it away meanwhile;
the one who comes too late begins anew.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from casaba.errors import InvalidInput
from casaba.kube import (
    RESOURCE_CLAIM_TEMPLATES,
    AlreadyExists,
    Conflict,
    Informer,
    KubeClient,
    KubeError,
    NotFound,
    ObjectKey,
    Refused,
    ServerError,
    Unauthorized,
    Undecodable,
    Unreachable,
    Untrusted,
)
from casaba.policy.collection import LAST_USED, MADE_BY, WEBHOOK, made_template
from casaba.policy.convert import TemplateWanted
from casaba.services.webhook.answers import TRY_AGAIN, ReviewRefused
from casaba.services.webhook.metrics import WebhookMetrics
from casaba.wire.kubernetes import ObjectMeta
from casaba.wire.kubernetes.meta import Wire

log = logging.getLogger(__name__)

_TRIES = 5
"""Each is lost only to somebody else's change of the same template, or to a broken connection."""


class TemplateHead(Wire, frozen=True):
    """A template without its spec, which its name stands for."""

    metadata: ObjectMeta


TEMPLATE_HEADS = RESOURCE_CLAIM_TEMPLATES.decoded_as(TemplateHead)


def made_templates(client: KubeClient) -> Informer[TemplateHead]:
    """Follows all templates that webhooks made."""
    return Informer(client, TEMPLATE_HEADS, label_selector=f"{MADE_BY}={WEBHOOK}")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class TemplateKeeper:
    """Makes templates and renews their stamps.

    `known` spares the API server a question about a template that was stamped a moment ago: that
    one can't have been collected since. Without contact to the server it is not believed.
    """

    def __init__(
        self,
        client: KubeClient,
        known: Informer[TemplateHead],
        metrics: WebhookMetrics,
        *,
        stamp_age_s: float,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._client = client
        self._known = known
        self._metrics = metrics
        self._stamp_age_s = stamp_age_s
        self._clock = clock

    async def keep(self, namespace: str, wanted: TemplateWanted, *, dry_run: bool) -> None:
        """Let a template be there; raises ReviewRefused. If cancelled: it may be there or not.

        A dry run asks the API server whether it would take it, and changes nothing.
        """
        try:
            outcome = await self._kept(namespace, wanted, dry_run)
        except KubeError as error:
            self._metrics.template("failed")
            log.warning(
                "template.not_made",
                extra={"namespace": namespace, "template": wanted.name, "error": str(error)},
            )
            raise _refusal(error) from error
        except InvalidInput as error:
            raise ReviewRefused(f"request.namespace: {error}", code=400) from error
        self._metrics.template(outcome)

    async def _kept(self, namespace: str, wanted: TemplateWanted, dry_run: bool) -> str:
        head = self._believed(namespace, wanted.name)
        failure: KubeError
        for _ in range(_TRIES):
            try:
                if head is None:
                    return await self._create(namespace, wanted, dry_run)
                return await self._renew(namespace, wanted.name, head, dry_run)
            except AlreadyExists as error:
                failure, head = error, await self._read(namespace, wanted.name)
            except (NotFound, Conflict, Unreachable) as error:
                if isinstance(error, Untrusted) or (head is None and isinstance(error, NotFound)):
                    raise
                failure, head = error, None
        raise failure

    def _believed(self, namespace: str, name: str) -> TemplateHead | None:
        if self._known.failure is not None:
            return None
        return self._known.objects.get(ObjectKey(namespace, name))

    async def _create(self, namespace: str, wanted: TemplateWanted, dry_run: bool) -> str:
        metadata = {
            "name": wanted.name,
            "labels": {**wanted.labels, MADE_BY: WEBHOOK},
            "annotations": {LAST_USED: self._stamp()},
        }
        body = {"metadata": metadata, "spec": wanted.spec}
        await self._client.create(TEMPLATE_HEADS, body, namespace=namespace, dry_run=dry_run)
        return "created"

    async def _renew(self, namespace: str, name: str, head: TemplateHead, dry_run: bool) -> str:
        """Raises NotFound and Conflict when it is gone, or another by now."""
        if dry_run or self._is_fresh(head):
            return "found"
        patch: dict[str, Any] = {"metadata": {"annotations": {LAST_USED: self._stamp()}}}
        await self._client.patch(
            TEMPLATE_HEADS, name, patch, namespace=namespace, uid=head.metadata.uid
        )
        return "renewed"

    async def _read(self, namespace: str, name: str) -> TemplateHead | None:
        """The template that stands where ours is to be; None if it is gone again."""
        try:
            head = await self._client.get(TEMPLATE_HEADS, name, namespace=namespace)
        except NotFound:
            return None
        if head.metadata.labels.get(MADE_BY) != WEBHOOK:
            raise ReviewRefused(
                f"the namespace has a ResourceClaimTemplate {name!r} that the webhook did not "
                f"make; delete it: kubectl delete -n {namespace} resourceclaimtemplate {name}",
                code=409,
            )
        return head

    def _is_fresh(self, head: TemplateHead) -> bool:
        """A stamp from the future is no better than an old one."""
        template = made_template(head.metadata, 0)
        if template is None or template.used_at is None:
            return False
        age_s = (self._clock() - template.used_at).total_seconds()
        return abs(age_s) < self._stamp_age_s

    def _stamp(self) -> str:
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _refusal(error: KubeError) -> ReviewRefused:
    """What the user is told: a 4xx is about what was asked, all else is not."""
    ours = isinstance(error, Unreachable | Undecodable | ServerError | Unauthorized)
    if isinstance(error, Refused) and not ours:
        reason = error.status.message or error.reason
        return ReviewRefused(
            f"the pod's ResourceClaimTemplate can't be made: {reason}", code=error.code
        )
    return ReviewRefused(
        f"the webhook can't reach the API server for the pod's ResourceClaimTemplate; {TRY_AGAIN}",
        code=503,
    )
