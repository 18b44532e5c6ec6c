"""What can be done to pods beside changing their fields: binding to a node, and eviction."""

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.delete_options import options_within
from casaba.simulation.api_server.deletion import timestamp
from casaba.simulation.api_server.deletions import Deletions
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.statuses import ApiError, bad_request
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.strategy import decoded
from casaba.simulation.api_server.writes import Clock, Written

_BINDING = ("v1", "Binding")
_EVICTION = ("policy/v1", "Eviction")

_DONE: Object = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_VERSIONS = {"Binding": "v1", "Eviction": "policy/v1"}


class Pods:
    """The subresources of pods that take an object of another kind."""

    def __init__(
        self, store: Store, admission: Admission, deletions: Deletions, clock: Clock
    ) -> None:
        self._store = store
        self._admission = admission
        self._deletions = deletions
        self._clock = clock

    async def bind(self, request: ResourceRequest) -> Written:
        """POST binding: the pod's node, once and for all; raises ApiError 400, 404 and 409."""
        binding = _body(request, _BINDING)
        node = _target(binding)
        current = self._store.get(request.resource, request.namespace, request.name)
        _check_bindable(current.object, binding)
        _, warnings = await self._admission.admitted(request, binding, None)
        current = self._store.get(request.resource, request.namespace, request.name)
        _check_bindable(current.object, binding)
        if not request.dry_run:
            bound = _bound(current.object, binding, node, timestamp(self._clock()))
            self._store.replace(request.resource, bound, of=current)
        return Written(object=_DONE, code=201, warnings=warnings)

    async def evict(self, request: ResourceRequest) -> Written:
        """POST eviction: a deletion; there are no disruption budgets. Raises ApiError."""
        eviction = _body(request, _EVICTION)
        asked = eviction.get("deleteOptions") or {}
        options = options_within(asked, dry_run=request.dry_run)
        self._store.get(request.resource, request.namespace, request.name)
        _, warnings = await self._admission.admitted(request, eviction, None)
        self._deletions.delete_admitted(request, options, warnings)
        return Written(object=_DONE, code=201, warnings=warnings)


def _body(request: ResourceRequest, kind: tuple[str, str]) -> Object:
    body, _ = decoded(request.resource, request.body, request.content_type, "Ignore", kind=kind)
    name = (body.get("metadata") or {}).get("name")
    if name and name != request.name:
        raise bad_request(f"name in URL does not match name in {kind[1]} object")
    return body


def _target(binding: Object) -> str:
    target = binding.get("target") or {}
    if target.get("kind", "") not in ("", "Node"):
        raise ApiError(
            500,
            "",
            f'target.kind: Unsupported value: "{target["kind"]}": '
            'supported values: "Node", "<empty>"',
        )
    if not target.get("name"):
        raise ApiError(500, "", "target.name: Required value")
    return str(target["name"])


def _check_bindable(pod: Object, binding: Object) -> None:
    name, bound = pod["metadata"]["name"], pod["spec"].get("nodeName")
    uid, meant = pod["metadata"]["uid"], (binding.get("metadata") or {}).get("uid")
    if meant and meant != uid:
        why = f"Precondition failed: UID in precondition: {meant}, UID in object meta: {uid}"
    elif pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif bound:
        why = f'pod {name} is already assigned to node "{bound}"'
    else:
        return
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    raise ApiError(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def _bound(pod: Object, binding: Object, node: str, now: str) -> Object:
    metadata, status = pod["metadata"], pod.get("status") or {}
    if added := (binding.get("metadata") or {}).get("annotations"):
        annotations = {**(metadata.get("annotations") or {}), **added}
        metadata = {**metadata, "annotations": annotations}
    others = [each for each in status.get("conditions") or () if each["type"] != "PodScheduled"]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }
