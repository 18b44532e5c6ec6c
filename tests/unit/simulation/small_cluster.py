"""A cluster of a few objects, and requests to it, without a server."""

from collections.abc import Iterable
from typing import Any

from casaba.simulation.api_server.bootstrap import bootstrap_objects
from casaba.simulation.api_server.requests import Object, ResourceRequest, UserInfo
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo

RBAC = "rbac.authorization.k8s.io"
ADMIN = UserInfo(username="admin", groups=("system:masters", "system:authenticated"))
ANNA = UserInfo(username="anna", groups=("operators", "system:authenticated"))
KUBELET = UserInfo(username="system:node:edge-1", groups=("system:nodes", "system:authenticated"))


class SmallCluster:
    """Objects by plural; begins with those of every cluster."""

    def __init__(self) -> None:
        self._objects: dict[str, list[Object]] = {info.plural: [] for info in RESOURCES}
        for object_ in bootstrap_objects():
            self.add(info_of(kind=object_["kind"]).plural, object_)

    def __call__(self, plural: str) -> Iterable[Object]:
        return self._objects[plural]

    def add(self, plural: str, object_: Object) -> Object:
        """Store an object; its uid is `uid-` and its name unless it has one."""
        metadata = {"uid": f"uid-{object_['metadata']['name']}", **object_["metadata"]}
        stored = {**object_, "metadata": metadata}
        self._objects[plural].append(stored)
        return stored

    def remove(self, plural: str, name: str) -> None:
        """Take an object out."""
        self._objects[plural] = [
            each for each in self._objects[plural] if each["metadata"]["name"] != name
        ]

    def add_namespace(self, name: str, **metadata: Any) -> None:
        """A namespace, `metadata` beside its name."""
        self.add("namespaces", {"metadata": {"name": name, **metadata}})

    def add_pod(self, name: str, node: str, namespace: str = "default", **spec: Any) -> Object:
        """A pod on a node."""
        return self.add("pods", pod(name, node, namespace, **spec))

    def add_account(self, name: str, namespace: str = "default") -> Object:
        """A service account."""
        return self.add("serviceaccounts", {"metadata": {"name": name, "namespace": namespace}})

    def grant(self, user: UserInfo, *rules: Object, namespace: str = "") -> None:
        """A role of its own for a user, in one namespace or everywhere."""
        number = len(self._objects["clusterroles"]) + len(self._objects["roles"])
        kind, plural = ("Role", "roles") if namespace else ("ClusterRole", "clusterroles")
        where = {"namespace": namespace} if namespace else {}
        metadata = {"name": f"role-{number}", **where}
        self.add(plural, {"metadata": metadata, "rules": list(rules)})
        self.bind(user, kind, metadata["name"], namespace=namespace)

    def bind(self, user: UserInfo, kind: str, role: str, *, namespace: str = "") -> None:
        """Give a role that is there, or not."""
        plural = "rolebindings" if namespace else "clusterrolebindings"
        where = {"namespace": namespace} if namespace else {}
        subjects = [{"kind": "User", "apiGroup": RBAC, "name": user.username}]
        self.add(
            plural,
            {
                "metadata": {"name": f"to-{role}", **where},
                "subjects": subjects,
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            },
        )


def pod(name: str, node: str = "", namespace: str = "default", **spec: Any) -> Object:
    """A pod of one container."""
    spec = {"containers": [{"name": "main", "image": "nothing"}], **spec}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "nodeName": node} if node else spec,
    }


def info_of(plural: str = "", *, kind: str = "") -> ResourceInfo:
    """The resource of a plural or a kind."""
    return next(info for info in RESOURCES if plural == info.plural or kind == info.kind)


def asked(
    user: UserInfo, verb: str, plural: str, name: str = "", *, namespace: str = "", **fields: Any
) -> ResourceRequest:
    """A request; `namespace` is `default` where a resource needs one."""
    info = info_of(plural)
    inside = namespace or ("default" if info.namespaced else "")
    return ResourceRequest(
        user=user, verb=verb, resource=info, namespace=inside, name=name, **fields
    )


def rule(verbs: str, resources: str, group: str = "", **fields: Any) -> Object:
    """A rule of a role; verbs and resources are separated by spaces."""
    return {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
        **fields,
    }
