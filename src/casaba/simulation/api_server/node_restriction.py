"""What a kubelet may write, beyond which kinds: only what is its own node's.

The admission plugin NodeRestriction, in its words. `node_authorization` has looked before.
"""

from collections.abc import Callable

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.node_authorization import node_name
from casaba.simulation.api_server.pod_admission import MIRROR_ANNOTATION
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import ApiError, forbidden

_RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
    }
)


def check_node_user(attributes: Attributes, objects: Objects) -> None:
    """Raises ApiError 403 for what a kubelet must leave alone; others may do what they may."""
    node = node_name(attributes.request.user)
    check = _CHECKS.get(attributes.request.resource.plural)
    if node is not None and check is not None:
        check(node, attributes, objects)


def _pod(node: str, attributes: Attributes, objects: Objects) -> None:
    if attributes.request.subresource == "eviction":
        pod = named(objects, "pods", attributes.namespace, attributes.request.name) or {}
        _require_own(pod, node, attributes, "evict pods")
    elif attributes.request.subresource == "status":
        _require_own(attributes.old or {}, node, attributes, "update pod status for pods")
        new, old = _metadata(attributes.object), _metadata(attributes.old)
        if (new.get("labels") or {}) != (old.get("labels") or {}):
            raise _no(attributes, f'node "{node}" cannot update labels through pod status')
    elif attributes.operation == "DELETE":
        _require_own(attributes.old or {}, node, attributes, "delete pods")
    elif attributes.operation == "CREATE":
        if MIRROR_ANNOTATION not in (_metadata(attributes.object).get("annotations") or {}):
            raise _no(
                attributes,
                f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only '
                "create mirror pods",
            )
        _require_own(attributes.object or {}, node, attributes, "create pods")


def _require_own(pod: Object, node: str, attributes: Attributes, what: str) -> None:
    if (pod.get("spec") or {}).get("nodeName") != node:
        raise _no(attributes, f'node "{node}" can only {what} with spec.nodeName set to itself')


def _node(node: str, attributes: Attributes, _: Objects) -> None:
    if attributes.name != node:
        other = attributes.name
        raise _no(attributes, f'node "{node}" is not allowed to modify node "{other}"')
    new, old = attributes.object or {}, attributes.old or {}
    if attributes.operation == "UPDATE" and not attributes.request.subresource:
        before, after = (_spec_taints(each) for each in (old, new))
        if before != after:
            raise _no(attributes, f'node "{node}" is not allowed to modify taints')
    before_labels, labels = _labels(old), _labels(new)
    changed = {
        key for key in before_labels.keys() | labels if before_labels.get(key) != labels.get(key)
    }
    if foreign := sorted(filter(_is_foreign, changed)):
        raise _no(attributes, f"is not allowed to modify labels: {', '.join(foreign)}")


def _spec_taints(node: Object) -> list[Object]:
    return list((node.get("spec") or {}).get("taints") or ())


def _labels(object_: Object) -> dict[str, str]:
    return dict(_metadata(object_).get("labels") or {})


def _is_foreign(label: str) -> bool:
    """Labels below kubernetes.io that are not the kubelet's, and all for workload isolation."""
    domain, slash, _ = label.partition("/")
    if not slash or label in _OWN_LABELS:
        return False
    if _is_below(domain, _RESTRICTED_DOMAIN):
        return True
    if any(_is_below(domain, own) for own in _OWN_DOMAINS):
        return False
    return any(_is_below(domain, reserved) for reserved in _KUBERNETES_DOMAINS)


def _is_below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _lease(node: str, attributes: Attributes, _: Objects) -> None:
    if attributes.name != node:
        why = "can only access node lease with the same name as the requesting node"
        raise _no(attributes, why)


def _slice(node: str, attributes: Attributes, _: Objects) -> None:
    verb = {"CREATE": "create", "DELETE": "delete"}.get(attributes.operation)
    if verb and (attributes.subject.get("spec") or {}).get("nodeName") != node:
        why = f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
        raise _no(attributes, why)


def _account(node: str, attributes: Attributes, objects: Objects) -> None:
    if attributes.request.subresource != "token":
        return
    reference = (attributes.subject.get("spec") or {}).get("boundObjectRef") or {}
    if reference.get("kind") != "Pod" or not reference.get("name"):
        raise _no(attributes, "node requested token not bound to a pod")
    if not reference.get("uid"):
        raise _no(attributes, "node requested token with a pod binding without a uid")
    pod = named(objects, "pods", attributes.namespace, reference["name"]) or {}
    if (pod.get("spec") or {}).get("nodeName") != node:
        raise _no(attributes, "node requested token bound to a pod scheduled on a different node")


def _metadata(object_: Object | None) -> Object:
    metadata: Object = (object_ or {}).get("metadata") or {}
    return metadata


def _no(attributes: Attributes, why: str) -> ApiError:
    return forbidden(attributes.request.resource, attributes.name, why)


_CHECKS: dict[str, Callable[[str, Attributes, Objects], None]] = {
    "leases": _lease,
    "nodes": _node,
    "pods": _pod,
    "resourceslices": _slice,
    "serviceaccounts": _account,
}
