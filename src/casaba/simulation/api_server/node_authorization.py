"""What a kubelet may read and write: itself, and what its own pods need.

Source: Kubernetes documentation, "Using Node Authorization"; KEP 4601 (lists limited by a field
selector). What this allows, the admission check in `node_restriction` narrows further.
"""

from collections.abc import Callable, Iterator

from casaba.simulation.api_server.access import MANY, Access, Decision, Objects, named
from casaba.simulation.api_server.requests import Object, UserInfo

NODE_GROUP = "system:nodes"
_USER_PREFIX = "system:node:"
_LEASES_NAMESPACE = "kube-node-lease"
_READ = frozenset({"get", "list", "watch"})
_WRITE = frozenset({"update", "patch"})

_ALLOWED = Decision(allowed=True)
_REFUSED = Decision(allowed=False)

_RULES: dict[tuple[str, str], frozenset[str]] = {
    ("authentication.k8s.io", "tokenreviews"): frozenset({"create"}),
    ("authorization.k8s.io", "subjectaccessreviews"): frozenset({"create"}),
    ("", "nodes"): frozenset({"create", "update", "patch"}),
    ("", "nodes/status"): _WRITE,
    ("", "pods"): frozenset({"create", "delete"}),
    ("", "pods/status"): _WRITE,
    ("", "pods/eviction"): frozenset({"create"}),
    ("", "events"): frozenset({"create", "update", "patch"}),
}
"""What needs no look at the cluster."""


def node_name(user: UserInfo) -> str | None:
    """The node that a user is the kubelet of, None for all others."""
    if NODE_GROUP not in user.groups or not user.username.startswith(_USER_PREFIX):
        return None
    return user.username.removeprefix(_USER_PREFIX) or None


def node_decision(access: Access, objects: Objects) -> Decision | None:
    """Whether a kubelet may, None if no kubelet asks."""
    node = node_name(access.user)
    if node is None or access.path:
        return None
    special = _SPECIAL.get((access.group, access.resource))
    decision = special(node, access, objects) if special else None
    if decision is not None:
        return decision
    verbs = _RULES.get((access.group, access.whole_resource), frozenset())
    return _ALLOWED if access.verb in verbs else _REFUSED


def _nodes(node: str, access: Access, _: Objects) -> Decision | None:
    if access.verb not in _READ or access.subresource:
        return None
    if access.name == node:
        return _ALLOWED
    whose = f"'{access.name}'" if access.name else "all nodes"
    return _no(f"node '{node}' cannot read {whose}, only its own Node object")


def _pods(node: str, access: Access, objects: Objects) -> Decision | None:
    if access.verb not in _READ or access.subresource:
        return None
    if access.verb != "get":
        if _is_limited_to(node, access):
            return _ALLOWED
        return _no("can only list/watch pods with spec.nodeName field selector")
    pod = named(objects, "pods", access.namespace, access.name)
    return _related(pod is not None and _runs_on(pod, node), node)


def _slices(node: str, access: Access, objects: Objects) -> Decision | None:
    if access.subresource:
        return _no("cannot access resourceslices subresource")
    if access.verb == "create":  # the admission check reads the slice
        return _ALLOWED
    if access.verb in MANY:
        if _is_limited_to(node, access):
            return _ALLOWED
        return _no(
            "can only list/watch/deletecollection resourceslices with nodeName field selector"
        )
    found = named(objects, "resourceslices", "", access.name)
    return _related(found is not None and found["spec"].get("nodeName") == node, node)


def _leases(node: str, access: Access, _: Objects) -> Decision | None:
    if access.verb not in {"get", "create", "update", "patch", "delete"}:
        return _no("can only get, create, update, patch, or delete a node lease")
    if access.namespace != _LEASES_NAMESPACE:
        return _no(f'can only access leases in the "{_LEASES_NAMESPACE}" system namespace')
    if access.verb != "create" and access.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _claims(node: str, access: Access, objects: Objects) -> Decision | None:
    if access.verb != "get" or access.subresource:
        return _no("can only get individual resources of this type")
    return _used_by_own_pod(node, access, objects, _claims_of)


def _configuration(node: str, access: Access, objects: Objects) -> Decision | None:
    if access.verb not in _READ or access.subresource:
        return _no("can only read resources of this type")
    if not access.name:
        return _no("No Object name found")
    return _used_by_own_pod(node, access, objects, _READERS[access.resource])


def _accounts(node: str, access: Access, objects: Objects) -> Decision | None:
    wanted = ("create", "token") if access.subresource else ("get", "")
    if (access.verb, access.subresource) != wanted:
        return _no("can only get individual resources of this type")
    return _used_by_own_pod(node, access, objects, _account_of)


def _used_by_own_pod(
    node: str, access: Access, objects: Objects, used: Callable[[Object], Iterator[str]]
) -> Decision:
    pods = (pod for pod in objects("pods") if _runs_on(pod, node))
    inside = (pod for pod in pods if pod["metadata"].get("namespace") == access.namespace)
    return _related(any(access.name in used(pod) for pod in inside), node)


def _claims_of(pod: Object) -> Iterator[str]:
    for claim in pod["spec"].get("resourceClaims") or ():
        yield claim.get("resourceClaimName") or ""
    for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        yield status.get("resourceClaimName") or ""


def _account_of(pod: Object) -> Iterator[str]:
    yield pod["spec"].get("serviceAccountName") or ""


def _config_maps_of(pod: Object) -> Iterator[str]:
    yield from _references(pod, "configMap", "name")
    yield from _in_environment(pod, "configMap")


def _secrets_of(pod: Object) -> Iterator[str]:
    yield from _references(pod, "secret", "secretName")
    yield from _in_environment(pod, "secret")
    yield from (each.get("name") or "" for each in pod["spec"].get("imagePullSecrets") or ())


def _references(pod: Object, kind: str, name: str) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        yield (volume.get(kind) or {}).get(name) or ""
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get(kind) or {}).get("name") or ""


def _in_environment(pod: Object, kind: str) -> Iterator[str]:
    for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        for each in container.get("envFrom") or ():
            yield (each.get(f"{kind}Ref") or {}).get("name") or ""
        for each in container.get("env") or ():
            yield ((each.get("valueFrom") or {}).get(f"{kind}KeyRef") or {}).get("name") or ""


def _is_limited_to(node: str, access: Access) -> bool:
    return any(
        term.field == "spec.nodeName" and term.equal and term.value == node
        for term in access.fields
    )


def _runs_on(pod: Object, node: str) -> bool:
    return bool(pod["spec"].get("nodeName") == node)


def _related(related: bool, node: str) -> Decision:
    if related:
        return _ALLOWED
    return _no(f"no relationship found between node '{node}' and this object")


def _no(reason: str) -> Decision:
    return Decision(allowed=False, reason=reason)


_READERS = {"configmaps": _config_maps_of, "secrets": _secrets_of}
_SPECIAL: dict[tuple[str, str], Callable[[str, Access, Objects], Decision | None]] = {
    ("", "nodes"): _nodes,
    ("", "pods"): _pods,
    ("", "configmaps"): _configuration,
    ("", "secrets"): _configuration,
    ("", "serviceaccounts"): _accounts,
    ("coordination.k8s.io", "leases"): _leases,
    ("resource.k8s.io", "resourceclaims"): _claims,
    ("resource.k8s.io", "resourceslices"): _slices,
}
