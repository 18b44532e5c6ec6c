"""In what the real server's kinds differ from each other, beside their schemas. Facts only."""

from casaba.simulation.api_server.resources import ResourceInfo

_RBAC = frozenset({"clusterroles", "clusterrolebindings", "roles", "rolebindings"})
_CREATED_BY_UPDATE = _RBAC | {"events", "leases"}
_VERSION_NEEDED = frozenset(
    {"leases", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
)
_SHOWN_WHEN_DELETED = frozenset(
    {
        "pods",
        "resourcequotas",
        "serviceaccounts",
        "deviceclasses",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    }
)


def created_by_update(info: ResourceInfo) -> bool:
    """Whether a PUT of an object that is not there creates it."""
    return info.plural in _CREATED_BY_UPDATE


def update_needs_version(info: ResourceInfo) -> bool:
    """Whether a PUT without a resourceVersion is refused."""
    return info.plural in _VERSION_NEEDED


def shown_when_deleted(info: ResourceInfo) -> bool:
    """Whether the answer to a deletion is the object instead of a Status."""
    return info.plural in _SHOWN_WHEN_DELETED


def deleted_gracefully(info: ResourceInfo) -> bool:
    """Whether a deletion leaves time for an end: only pods have something that ends."""
    return info.plural == "pods"
