"""Makes claims from templates, and frees claims that nobody uses."""

from typing import NamedTuple

import msgspec

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import (
    RESOURCE_CLAIMS,
    Deleted,
    EventRecorder,
    KubeClient,
    KubeError,
    NotFound,
    ObjectKey,
    Refused,
)
from casaba.simulation.controllers.claim_making import (
    MissingClaim,
    Object,
    is_told,
    made_before,
    missing_claims,
    new_claim,
    status_patch,
)
from casaba.simulation.controllers.claim_release import (
    Release,
    is_done,
    plan_release,
    pod_owner,
    pod_users,
)
from casaba.simulation.workloads.claim_names import (
    FINALIZER,
    ClaimNotThere,
    can_be_reserved,
    claim_names,
    is_reserved_for,
)
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.objects import PODS, Pod
from casaba.simulation.workloads.references import about_pod
from casaba.simulation.workloads.writing import OVERTAKEN, patch_claim, user_of_claim
from casaba.wire.kubernetes import ResourceClaim

FIELD_MANAGER = "ResourceClaimController"


class ClaimWork(NamedTuple):
    """A pod whose claims, or a claim, to be looked at."""

    kind: str
    key: ObjectKey


class ClaimController:
    """kube-controller-manager's resourceclaim-controller."""

    def __init__(
        self,
        client: KubeClient,
        events: EventRecorder,
        *,
        pods: Source[Pod],
        claims: Source[ResourceClaim],
        templates: Source[Object],
    ) -> None:
        self._client = client
        self._events = events
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._queue: WorkQueue[ClaimWork] = WorkQueue(overtaken=OVERTAKEN)
        self._made: dict[str, dict[str, str]] = {}
        """Names by entry by UID of the pod, of claims that the watch may not have told of yet."""
        self._unsure: set[str] = set()
        """Pods by UID for which a claim may have been made: the answer never came."""
        pods.listen(self._note_pod)
        claims.listen(self._note_claim)
        templates.listen(self._note_template)

    async def run(self) -> None:
        """Work for ever."""
        await self._queue.serve(self._work, workers=4)

    def _note_pod(self, change: Change[Pod]) -> None:
        pod = change.object
        if not pod.spec.resource_claims:
            return
        if isinstance(change, Deleted):
            self._made.pop(pod.metadata.uid, None)
            self._unsure.discard(pod.metadata.uid)
        else:
            self._queue.add(ClaimWork("pod", change.key))
        if isinstance(change, Deleted) or is_done(pod):
            for name in claim_names(pod):
                self._queue.add(ClaimWork("claim", ObjectKey(change.key.namespace, name)))

    def _note_claim(self, change: Change[ResourceClaim]) -> None:
        if isinstance(change, Deleted):
            self._forget_made(change.object)
        else:
            self._queue.add(ClaimWork("claim", change.key))
        for key, pod in self._pods.objects.items():
            if key.namespace == change.key.namespace and change.key.name in claim_names(pod):
                self._queue.add(ClaimWork("pod", key))

    def _forget_made(self, claim: ResourceClaim) -> None:
        """One that somebody deletes under its pod is made anew."""
        owner = pod_owner(claim)
        names = self._made.get(owner.uid, {}) if owner else {}
        for entry in [entry for entry, name in names.items() if name == claim.metadata.name]:
            del names[entry]

    def _note_template(self, change: Change[Object]) -> None:
        for key, pod in self._pods.objects.items():
            wanted = {entry.resource_claim_template_name for entry in pod.spec.resource_claims}
            if key.namespace == change.key.namespace and change.key.name in wanted:
                self._queue.add(ClaimWork("pod", key))

    async def _work(self, work: ClaimWork) -> None:
        if work.kind == "pod":
            await self._serve_pod(work.key)
        else:
            await self._serve_claim(work.key)

    async def _serve_pod(self, key: ObjectKey) -> None:
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deletion_timestamp or pod.is_finished:
            return
        names = await self._made_names(pod)
        for missing in missing_claims(pod, self._claims.objects, names):
            names[missing.entry] = await self._make(pod, missing)
        if names and not is_told(pod, names):
            await self._client.apply(
                PODS,
                key.name,
                status_patch(pod, names),
                namespace=key.namespace,
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        if pod.spec.node_name:
            await self._reserve(pod)

    async def _made_names(self, pod: Pod) -> dict[str, str]:
        """Claims made for the pod, whether its status tells them or not."""
        claims = self._claims.objects
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        if uid in self._unsure:
            listed = await self._client.list(RESOURCE_CLAIMS, namespace=namespace)
            self._unsure.discard(uid)
            self._made.setdefault(uid, {}).update(made_before(pod, listed.items))
        here = [claim for key, claim in claims.items() if key.namespace == namespace]
        return {**self._made.get(uid, {}), **made_before(pod, here)}

    async def _make(self, pod: Pod, missing: MissingClaim) -> str:
        namespace, uid = pod.metadata.namespace, pod.metadata.uid
        template = self._templates.objects.get(ObjectKey(namespace, missing.template))
        try:
            if template is None:
                raise ClaimNotThere(
                    f'resource claim template "{missing.template}": '
                    f'resourceclaimtemplate.resource.k8s.io "{missing.template}" not found'
                )
            body = new_claim(pod, missing.entry, template)
            made = await self._client.create(RESOURCE_CLAIMS, body, namespace=namespace)
        except (ClaimNotThere, KubeError) as error:
            if isinstance(error, KubeError) and not _is_certainly_undone(error):
                self._unsure.add(uid)
            self._events.record(
                about_pod(pod),
                type="Warning",
                reason="FailedResourceClaimCreation",
                message=f"PodResourceClaim {missing.entry}: {error}",
            )
            raise
        self._made.setdefault(uid, {})[missing.entry] = made.metadata.name
        return made.metadata.name

    async def _reserve(self, pod: Pod) -> None:
        """For pods that came to their node past the scheduler."""
        for name in claim_names(pod):
            claim = self._claims.objects.get(ObjectKey(pod.metadata.namespace, name))
            if (
                claim is None
                or claim.status.allocation is None
                or is_reserved_for(claim, pod)
                or not can_be_reserved(claim)
            ):
                continue
            users = [*msgspec.to_builtins(claim.status.reserved_for), user_of_claim(pod)]
            await patch_claim(self._client, claim, {"status": {"reservedFor": users}}, "status")

    async def _serve_claim(self, key: ObjectKey) -> None:
        claim = self._claims.objects.get(key)
        if claim is None:
            return
        pods = {
            user.uid: await self._pod(key.namespace, user.name, user.uid)
            for user in pod_users(claim)
        }
        reference = pod_owner(claim)
        owner = (
            self._pods.objects.get(ObjectKey(key.namespace, reference.name)) if reference else None
        )
        await self._carry_out(claim, plan_release(claim, pods, owner))

    async def _pod(self, namespace: str, name: str, uid: str) -> Pod | None:
        """The pod, None if it is gone; one that is not known may be new, so the server is asked."""
        pod = self._pods.objects.get(ObjectKey(namespace, name))
        if pod is None:
            try:
                pod = await self._client.get(PODS, name, namespace=namespace)
            except NotFound:
                return None
        return pod if pod.metadata.uid == uid else None

    async def _carry_out(self, claim: ResourceClaim, plan: Release) -> None:
        """Only if nobody else changed the claim; else the watch brings it here again."""
        status: Object = {}
        if plan.keep_users is not None:
            status["reservedFor"] = msgspec.to_builtins(plan.keep_users) or None
        if plan.deallocate:
            status["allocation"] = None
        if status:
            claim = await patch_claim(self._client, claim, {"status": status}, "status")
        if plan.remove_finalizer:
            others = [entry for entry in claim.metadata.finalizers if entry != FINALIZER]
            await patch_claim(self._client, claim, {"metadata": {"finalizers": others}})
        if plan.delete:
            await self._delete(claim)

    async def _delete(self, claim: ResourceClaim) -> None:
        meta = claim.metadata
        try:
            await self._client.delete(
                RESOURCE_CLAIMS, meta.name, namespace=meta.namespace, uid=meta.uid
            )
        except NotFound:
            return


def _is_certainly_undone(error: KubeError) -> bool:
    return isinstance(error, Refused) and error.code < 500
