"""What admission adds to new pods: a service account, a priority, and patience with lost nodes.

The plugins ServiceAccount (without its token volume), Priority and DefaultTolerationSeconds. The
account `default` need not exist: the controller that makes it may not run.
"""

from collections.abc import Iterator

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import forbidden

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_DEFAULT_ACCOUNT = "default"
_PRIORITIES = {"": 0, "system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_GIVEN_ONCE = ("priority", "preemptionPolicy")
_PATIENCE_S = 300
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def completed_pod(attributes: Attributes, objects: Objects) -> Object:
    """The pod with what it leaves out. Raises ApiError 403."""
    pod = attributes.subject
    spec = dict(pod["spec"])
    if MIRROR_ANNOTATION not in (pod["metadata"].get("annotations") or {}):
        spec |= _account(attributes, spec, objects)
    spec |= _priority(attributes, spec)
    return {**pod, "spec": _patient(spec)}


def continued_pod(attributes: Attributes) -> Object:
    """A changed pod that keeps what admission gave it once, also if the change leaves it out."""
    pod, known = attributes.subject, (attributes.old or {}).get("spec", {})
    kept = {field: known[field] for field in _GIVEN_ONCE if field in known}
    return {**pod, "spec": _patient({**kept, **pod["spec"]})}


def _patient(spec: Object) -> Object:
    missing = list(_tolerations(spec))
    if not missing:
        return spec
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *missing]}


def _account(attributes: Attributes, spec: Object, objects: Objects) -> Object:
    name = spec.get("serviceAccountName") or _DEFAULT_ACCOUNT
    inside = attributes.namespace
    if name != _DEFAULT_ACCOUNT and named(objects, "serviceaccounts", inside, name) is None:
        raise forbidden(
            attributes.request.resource,
            attributes.name,
            f'error looking up service account {inside}/{name}: serviceaccount "{name}" not found',
        )
    return {"serviceAccountName": name, "serviceAccount": name}


def _priority(attributes: Attributes, spec: Object) -> Object:
    name = spec.get("priorityClassName") or ""
    info = attributes.request.resource
    if name not in _PRIORITIES:
        raise forbidden(info, attributes.name, f"no PriorityClass with name {name} was found")
    priority, given = _PRIORITIES[name], spec.get("priority")
    if given is not None and given != priority:
        raise forbidden(
            info,
            attributes.name,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority "
            f"admission controller computed {priority} from the given PriorityClass name",
        )
    policy = spec.get("preemptionPolicy") or "PreemptLowerPriority"
    return {"priority": priority, "preemptionPolicy": policy}


def _tolerations(spec: Object) -> Iterator[Object]:
    """Those for a node that is lost, unless the pod says itself how it bears that."""
    for key in _LOST:
        if not any(_covers(each, key) for each in spec.get("tolerations") or ()):
            yield {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _PATIENCE_S,
            }


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )
