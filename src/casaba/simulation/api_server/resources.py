"""The kinds that the simulated server knows: only those that casaba and its users' files need."""

from collections.abc import Iterable
from dataclasses import dataclass

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, kw_only=True)
class ResourceInfo:
    """One resource: how it is spelt, and which parts of the machinery it uses."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """`status` makes the main resource ignore changes of the status, and the other way round."""
    selectable: tuple[str, ...] = ()
    """Field selectors beside metadata.name and metadata.namespace."""
    has_generation: bool = False
    """Whether metadata.generation counts the changes of the spec."""
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def api_version(self) -> str:
        """Group and version as objects spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`plural.group`, as messages name it; the core group has none."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_RBAC = "rbac.authorization.k8s.io"
_WEBHOOKS = "admissionregistration.k8s.io"
_CREATE_ONLY = ("create",)

RESOURCES: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        plural="namespaces",
        kind="Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=("finalize", "status"),
        selectable=("status.phase",),
    ),
    ResourceInfo(
        plural="nodes",
        kind="Node",
        namespaced=False,
        short_names=("no",),
        subresources=("status",),
        selectable=("spec.unschedulable",),
    ),
    ResourceInfo(
        plural="pods",
        kind="Pod",
        namespaced=True,
        short_names=("po",),
        categories=("all",),
        selectable=_POD_FIELDS,
        subresources=("binding", "eviction", "log", "status"),
        has_generation=True,
    ),
    ResourceInfo(
        plural="events",
        kind="Event",
        namespaced=True,
        short_names=("ev",),
        selectable=_EVENT_FIELDS,
    ),
    ResourceInfo(plural="configmaps", kind="ConfigMap", namespaced=True, short_names=("cm",)),
    ResourceInfo(plural="secrets", kind="Secret", namespaced=True, selectable=("type",)),
    ResourceInfo(
        plural="serviceaccounts",
        kind="ServiceAccount",
        namespaced=True,
        short_names=("sa",),
        subresources=("token",),
    ),
    ResourceInfo(
        plural="resourcequotas",
        kind="ResourceQuota",
        namespaced=True,
        short_names=("quota",),
        subresources=("status",),
    ),
    ResourceInfo(group="coordination.k8s.io", plural="leases", kind="Lease", namespaced=True),
    ResourceInfo(
        group="resource.k8s.io",
        plural="deviceclasses",
        kind="DeviceClass",
        namespaced=False,
        has_generation=True,
    ),
    ResourceInfo(
        group="resource.k8s.io",
        plural="resourceslices",
        kind="ResourceSlice",
        namespaced=False,
        has_generation=True,
        selectable=("spec.driver", "spec.nodeName"),
    ),
    ResourceInfo(
        group="resource.k8s.io",
        plural="resourceclaims",
        kind="ResourceClaim",
        namespaced=True,
        subresources=("status",),
    ),
    ResourceInfo(
        group="resource.k8s.io",
        plural="resourceclaimtemplates",
        kind="ResourceClaimTemplate",
        namespaced=True,
    ),
    ResourceInfo(group=_RBAC, plural="clusterroles", kind="ClusterRole", namespaced=False),
    ResourceInfo(
        group=_RBAC, plural="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
    ),
    ResourceInfo(group=_RBAC, plural="roles", kind="Role", namespaced=True),
    ResourceInfo(group=_RBAC, plural="rolebindings", kind="RoleBinding", namespaced=True),
    ResourceInfo(
        group=_WEBHOOKS,
        plural="mutatingwebhookconfigurations",
        kind="MutatingWebhookConfiguration",
        namespaced=False,
        has_generation=True,
        categories=("api-extensions",),
    ),
    ResourceInfo(
        group=_WEBHOOKS,
        plural="validatingwebhookconfigurations",
        kind="ValidatingWebhookConfiguration",
        namespaced=False,
        has_generation=True,
        categories=("api-extensions",),
    ),
    ResourceInfo(
        group="authentication.k8s.io",
        plural="tokenreviews",
        kind="TokenReview",
        namespaced=False,
        verbs=_CREATE_ONLY,
    ),
    ResourceInfo(
        group="authentication.k8s.io",
        plural="selfsubjectreviews",
        kind="SelfSubjectReview",
        namespaced=False,
        verbs=_CREATE_ONLY,
    ),
    ResourceInfo(
        group="authorization.k8s.io",
        plural="subjectaccessreviews",
        kind="SubjectAccessReview",
        namespaced=False,
        verbs=_CREATE_ONLY,
    ),
    ResourceInfo(
        group="authorization.k8s.io",
        plural="selfsubjectaccessreviews",
        kind="SelfSubjectAccessReview",
        namespaced=False,
        verbs=_CREATE_ONLY,
    ),
    ResourceInfo(
        group="authorization.k8s.io",
        plural="selfsubjectrulesreviews",
        kind="SelfSubjectRulesReview",
        namespaced=False,
        verbs=_CREATE_ONLY,
    ),
)


def find_resource(
    group: str, version: str, plural: str, among: Iterable[ResourceInfo] = RESOURCES
) -> ResourceInfo | None:
    """The resource of a path, None if the server has none such."""
    for info in among:
        if (info.group, info.version, info.plural) == (group, version, plural):
            return info
    return None
