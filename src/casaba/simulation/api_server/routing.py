"""From a method and a URL to what is asked for (Kubernetes API concepts, "Resource URIs"). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casaba.simulation.api_server.list_options import flag
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo, find_resource
from casaba.simulation.api_server.statuses import method_not_allowed, no_such_path, not_simulated

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE_VERBS: Mapping[str, Mapping[str, str]] = {
    "status": {"GET": "get", "PUT": "update", "PATCH": "patch"},
    "finalize": {"PUT": "update"},
    "log": {"GET": "get"},
    "binding": {"POST": "create"},
    "eviction": {"POST": "create"},
    "token": {"POST": "create"},
}
_POD_SUBRESOURCES_LEFT_OUT = frozenset(
    {"attach", "ephemeralcontainers", "exec", "portforward", "proxy"}
)
_VERSIONS = {(info.group, info.version) for info in RESOURCES}
_GROUPS = {info.group for info in RESOURCES if info.group}


@dataclass(frozen=True, kw_only=True)
class Route:
    """A URL that names objects, and the verb."""

    verb: str
    resource: ResourceInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def is_resource_path(path: str) -> bool:
    """Whether a path belongs to a group and version that the server has."""
    return _group_version(_parts(path)) is not None


def is_of_known_group(path: str) -> bool:
    """Whether a path is below a group that the server has, whatever it is."""
    match _parts(path):
        case ["api", _, *_]:
            return True
        case ["apis", group, _, *_]:
            return group in _GROUPS
        case _:
            return False


def route(method: str, path: str, query: Mapping[str, str]) -> Route:
    """What a request of a resource path asks for; raises ApiError 404 and 405."""
    parts = _parts(path)
    found = _group_version(parts)
    if found is None:
        raise no_such_path()
    group, version, rest = found
    namespace, rest = _namespace(rest)
    plural, name, subresource = _named(rest)
    info = find_resource(group, version, plural)
    if info is None:
        raise no_such_path()
    _check_shape(info, namespace, name, subresource, method)
    verb = _verb(info, method, name, subresource, query)
    return Route(verb=verb, resource=info, namespace=namespace, name=name, subresource=subresource)


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/")


def _group_version(parts: Sequence[str]) -> tuple[str, str, list[str]] | None:
    """Group, version and the rest of the path."""
    match parts:
        case ["api", "v1", *rest] if rest:
            return "", "v1", list(rest)
        case ["apis", group, version, *rest] if rest and (group, version) in _VERSIONS:
            return group, version, list(rest)
        case _:
            return None


def _namespace(rest: list[str]) -> tuple[str, list[str]]:
    """A namespace that things are in; of a namespace itself there is none."""
    match rest:
        case ["namespaces", _, "status" | "finalize"]:
            return "", rest
        case ["namespaces", namespace, _, *_]:
            return namespace, rest[2:]
        case _:
            return "", rest


def _named(rest: list[str]) -> tuple[str, str, str]:
    if len(rest) > 3 or not all(rest):
        raise no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    return plural, name, subresource


def _check_shape(
    info: ResourceInfo, namespace: str, name: str, subresource: str, method: str
) -> None:
    if subresource and subresource not in info.subresources:
        if info.plural == "pods" and subresource in _POD_SUBRESOURCES_LEFT_OUT:
            raise not_simulated(f"pods/{subresource}")
        raise no_such_path()
    if info.namespaced and not namespace:
        if name:
            raise no_such_path()
        if method != "GET":
            raise method_not_allowed()
    if namespace and not info.namespaced:
        raise no_such_path()


def _verb(
    info: ResourceInfo, method: str, name: str, subresource: str, query: Mapping[str, str]
) -> str:
    if subresource:
        verbs = _SUBRESOURCE_VERBS[subresource]
        if method not in verbs:
            raise method_not_allowed()
        return verbs[method]
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method)
    if verb is None or verb not in info.verbs:
        raise method_not_allowed()
    return "watch" if verb == "list" and flag(query, "watch") else verb
