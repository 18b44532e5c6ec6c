"""Nothing new in a namespace that is not there or going; the first namespaces stay.

The admission plugin NamespaceLifecycle of the real server, in its words.
"""

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.resources import ResourceInfo, find_resource
from casaba.simulation.api_server.statuses import ApiError, forbidden, not_found

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def check_namespace(attributes: Attributes, objects: Objects) -> None:
    """Raises ApiError 403 or 404."""
    info = attributes.request.resource
    if attributes.is_namespace:
        if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
            raise forbidden(info, attributes.name, "this namespace may not be deleted")
        return
    if attributes.operation != "CREATE" or not info.namespaced:
        return
    name = attributes.namespace
    namespace = named(objects, "namespaces", "", name)
    if namespace is None:
        namespaces = find_resource("", "v1", "namespaces")
        assert namespaces is not None
        raise not_found(namespaces, name)
    if namespace["metadata"].get("deletionTimestamp"):
        raise _terminating(info, attributes.name, name)


def _terminating(info: ResourceInfo, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refusal = forbidden(info, name, why)
    refusal.status["details"]["causes"] = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return refusal
