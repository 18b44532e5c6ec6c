"""The objects that a cluster begins with: its namespaces, and the roles that everybody knows.

The roles hold what the real ones say of the kinds that this server has; aggregation is done here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from casaba.simulation.api_server.requests import Object

FIRST_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
_RBAC = "rbac.authorization.k8s.io"
_DRA = "resource.k8s.io"
_READ = ("get", "list", "watch")
_CHANGE = ("patch", "update")
_WRITE = ("create", "delete", "deletecollection", *_CHANGE)
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH)


def bootstrap_objects() -> Iterator[Object]:
    """What exists before the first request, without the fields that the server sets."""
    for name in FIRST_NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        yield {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": labels},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
    for name, rules in _ROLES.items():
        yield _rbac("ClusterRole", name) | {"rules": [dict(rule) for rule in rules]}
    for name, (kind, subjects) in _SUBJECTS.items():
        yield _rbac("ClusterRoleBinding", name) | {
            "subjects": [{"kind": kind, "apiGroup": _RBAC, "name": each} for each in subjects],
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        }


def _rbac(kind: str, name: str) -> Object:
    return {
        "kind": kind,
        "apiVersion": f"{_RBAC}/v1",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }


def _rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> dict[str, Any]:
    rule = {"verbs": sorted(verbs), "apiGroups": [group], "resources": sorted(resources)}
    return rule | {"resourceNames": list(names)} if names else rule


def _paths(paths: Sequence[str]) -> dict[str, Any]:
    return {"verbs": ["get"], "nonResourceURLs": sorted(paths)}


_OWN_OBJECTS = ("configmaps", "events", "pods", "serviceaccounts")
_CLAIMS = ("resourceclaims", "resourceclaimtemplates")

_VIEW = (
    _rule("", (*_OWN_OBJECTS, "namespaces", "namespaces/status"), _READ),
    _rule("", ("pods/log", "pods/status"), _READ),
    _rule("", ("resourcequotas", "resourcequotas/status"), _READ),
    _rule(_DRA, (*_CLAIMS, "resourceclaims/status"), _READ),
)
_EDIT = (
    _rule("", (*_OWN_OBJECTS, "secrets"), _WRITE),
    _rule("", ("secrets",), _READ),
    _rule("", ("pods/eviction", "serviceaccounts/token"), ("create",)),
    _rule("coordination.k8s.io", ("leases",), (*_READ, *_WRITE)),
    _rule(_DRA, _CLAIMS, _WRITE),
    *_VIEW,
)
_ADMIN = (_rule(_RBAC, ("rolebindings", "roles"), (*_READ, *_WRITE)), *_EDIT)
_EVERYTHING = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_ASK = (
    _rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
    _rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
)
_NODE = (
    *_ASK,
    _rule("", ("nodes",), ("create", *_READ, *_CHANGE)),
    _rule("", ("nodes/status", "pods/status"), _CHANGE),
    _rule("", ("events",), ("create", *_CHANGE)),
    _rule("", ("pods",), ("create", "delete", *_READ)),
    _rule("", ("pods/eviction", "serviceaccounts/token"), ("create",)),
    _rule("", ("configmaps", "secrets"), _READ),
    _rule("coordination.k8s.io", ("leases",), ("create", "delete", "get", *_CHANGE)),
    _rule(_DRA, ("resourceclaims",), ("get",)),
    _rule(_DRA, ("resourceslices",), ("deletecollection",)),
    _rule("", ("serviceaccounts",), ("get",)),
)
_SCHEDULER = (
    _rule("", ("events",), ("create", *_CHANGE)),
    _rule("coordination.k8s.io", ("leases",), ("create",)),
    _rule("coordination.k8s.io", ("leases",), ("update", *_READ), ("kube-scheduler",)),
    _rule("", ("namespaces", "nodes"), _READ),
    _rule("", ("pods",), ("delete", *_READ)),
    _rule("", ("pods/binding",), ("create",)),
    _rule("", ("pods/status",), _CHANGE),
    *_ASK,
    _rule(_DRA, ("deviceclasses", "resourceslices"), _READ),
    _rule(_DRA, ("resourceclaims",), ("create", "delete")),
    _rule(_DRA, ("resourceclaims", "resourceclaims/status"), (*_CHANGE, *_READ)),
    _rule(_DRA, ("resourceclaims/binding",), _CHANGE),
)
_BASIC_USER = (
    _rule(
        "authorization.k8s.io",
        ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        ("create",),
    ),
    _rule("authentication.k8s.io", ("selfsubjectreviews",), ("create",)),
)
_ROLES: dict[str, tuple[dict[str, Any], ...]] = {
    "admin": _ADMIN,
    "cluster-admin": _EVERYTHING,
    "edit": _EDIT,
    "system:basic-user": _BASIC_USER,
    "system:discovery": (_paths(_DISCOVERY),),
    "system:kube-scheduler": _SCHEDULER,
    "system:node": _NODE,
    "system:public-info-viewer": (_paths(_HEALTH),),
    "view": _VIEW,
}
_SUBJECTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cluster-admin": ("Group", ("system:masters",)),
    "system:basic-user": ("Group", ("system:authenticated",)),
    "system:discovery": ("Group", ("system:authenticated",)),
    "system:kube-scheduler": ("User", ("system:kube-scheduler",)),
    "system:public-info-viewer": ("Group", ("system:authenticated", "system:unauthenticated")),
}
