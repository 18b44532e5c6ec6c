"""The resources that casaba speaks of: where each lives in the API and what its answers become."""

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, cast
from urllib.parse import quote

from casaba.errors import InvalidInput
from casaba.wire import kubernetes as wire

T = TypeVar("T")
U = TypeVar("U")


class ObjectKey(NamedTuple):
    """Names an object within a resource; the namespace is empty for cluster-scoped ones."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A resource of the API, and the type that its objects are decoded into."""

    group: str
    """API group; empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool
    form: type[T]
    """What an object becomes: a Struct, `dict`, or `msgspec.Raw` for the bytes themselves."""

    @property
    def api_version(self) -> str:
        """Group and version as objects spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def decoded_as(self, form: type[U]) -> "Resource[U]":
        """The same resource with another form, such as `dict` or `msgspec.Raw`."""
        return cast("Resource[U]", replace(cast("Resource[Any]", self), form=form))

    def collection_path(self, namespace: str | None = None) -> str:
        """Path of all objects, or of those in one namespace; raises InvalidInput."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace is None:
            return f"{root}/{self.plural}"
        if not self.namespaced:
            raise ValueError(f"{self.plural} have no namespace, {namespace!r} was given")
        return f"{root}/namespaces/{_segment('namespace', namespace)}/{self.plural}"

    def path(self, name: str, namespace: str | None = None, subresource: str | None = None) -> str:
        """Path of one object or of its subresource; raises InvalidInput."""
        if self.namespaced and namespace is None:
            raise ValueError(f"one of the {self.plural} is named without its namespace")
        path = f"{self.collection_path(namespace)}/{_segment('name', name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(what: str, text: str) -> str:
    """A name as one path segment; an empty one would address the whole collection."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise InvalidInput(f"{text!r} can't be the {what} of a Kubernetes object")
    return quote(text, safe=":")


Object = dict[str, Any]
"""An object as its JSON says it, whole; what resources without a form of their own become."""

_RESOURCE = "resource.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_WEBHOOKS = "admissionregistration.k8s.io"

NODES = Resource("", "v1", "nodes", "Node", False, wire.Node)
PODS = Resource("", "v1", "pods", "Pod", True, wire.Pod)
EVENTS = Resource("", "v1", "events", "Event", True, wire.Event)
NAMESPACES: Resource[Object] = Resource("", "v1", "namespaces", "Namespace", False, dict)
CONFIG_MAPS: Resource[Object] = Resource("", "v1", "configmaps", "ConfigMap", True, dict)
RESOURCE_QUOTAS: Resource[Object] = Resource(
    "", "v1", "resourcequotas", "ResourceQuota", True, dict
)
SECRETS: Resource[Object] = Resource("", "v1", "secrets", "Secret", True, dict)
SERVICE_ACCOUNTS: Resource[Object] = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", True, dict
)
DAEMON_SETS: Resource[Object] = Resource("apps", "v1", "daemonsets", "DaemonSet", True, dict)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, wire.Lease)
RESOURCE_SLICES = Resource(
    _RESOURCE, "v1", "resourceslices", "ResourceSlice", False, wire.ResourceSlice
)
RESOURCE_CLAIMS = Resource(
    _RESOURCE, "v1", "resourceclaims", "ResourceClaim", True, wire.ResourceClaim
)
RESOURCE_CLAIM_TEMPLATES: Resource[Object] = Resource(
    _RESOURCE, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True, dict
)
DEVICE_CLASSES = Resource(_RESOURCE, "v1", "deviceclasses", "DeviceClass", False, wire.DeviceClass)
ROLES: Resource[Object] = Resource(_RBAC, "v1", "roles", "Role", True, dict)
ROLE_BINDINGS: Resource[Object] = Resource(_RBAC, "v1", "rolebindings", "RoleBinding", True, dict)
CLUSTER_ROLES: Resource[Object] = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False, dict)
CLUSTER_ROLE_BINDINGS: Resource[Object] = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False, dict
)
MUTATING_WEBHOOKS: Resource[Object] = Resource(
    _WEBHOOKS, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, dict
)
VALIDATING_WEBHOOKS: Resource[Object] = Resource(
    _WEBHOOKS,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
    dict,
)
