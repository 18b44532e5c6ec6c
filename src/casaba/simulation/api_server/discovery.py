"""What the server tells of itself: its version, groups and resources, old form and aggregated.

Source: apimachinery meta/v1 (APIGroupList, APIResourceList) and KEP-3352, aggregated discovery.
"""

import base64
import hashlib

from casaba.simulation.api_server.media_types import accepted_types, not_acceptable
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_JSON = "application/json"

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+casaba.simulated",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none: casaba's simulation is Python",
    "compiler": "none",
    "platform": "linux/simulated",
}

# Subresources that take or give another kind than their parent's: group, version, kind.
_KINDS = {
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "finalize": ("update",),
    "log": ("get",),
}
_STATUS_VERBS = ("get", "patch", "update")


def discovery_document(path: str, accept: str) -> Object | None:
    """The answer to GET of a discovery path; None if the path is not one.

    Raises ApiError 406 if the client takes nothing that the path offers. A document of kind
    APIGroupDiscoveryList must be sent as `AGGREGATED_TYPE`, or clients don't know it.
    """
    path = path.rstrip("/")
    if path in ("/api", "/apis") and _wants_aggregated(accept):
        return _aggregated(core=path == "/api")
    document = _plain(path)
    if document is None:
        return None
    if not any(clause.is_json and not clause.form[0] for clause in accepted_types(accept)):
        raise not_acceptable(_JSON)
    return document


def _wants_aggregated(accept: str) -> bool:
    """The first clause that can be served decides."""
    for clause in accepted_types(accept):
        if clause.is_json and clause.form == _AGGREGATED:
            return True
        if clause.is_json and not clause.form[0]:
            return False
    return False


def _plain(path: str) -> Object | None:
    """The document in its old form."""
    match path:
        case "/version":
            return VERSION
        case "/api":
            return {"kind": "APIVersions", "versions": _versions(""), **_NO_ADDRESSES}
        case "/apis":
            groups = [_group(name) for name in _group_names()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for info in RESOURCES:
        if path == version_path(info):
            return _resources(info.api_version)
        if info.group and path == f"/apis/{info.group}":
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(info.group)}
    return None


_NO_ADDRESSES: Object = {"serverAddressByClientCIDRs": []}


def version_path(info: ResourceInfo) -> str:
    """The path below which a resource's group and version are served."""
    return f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"


def _group_names() -> list[str]:
    return [name for name in dict.fromkeys(info.group for info in RESOURCES) if name]


def _group(name: str) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in _versions(name)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _versions(group: str) -> list[str]:
    return list(dict.fromkeys(info.version for info in RESOURCES if info.group == group))


def _singular(info: ResourceInfo) -> str:
    return info.singular or info.kind.lower()


def _resources(api_version: str) -> Object:
    served = sorted(
        (info for info in RESOURCES if info.api_version == api_version),
        key=lambda info: info.plural,
    )
    document: Object = {"kind": "APIResourceList"}
    if "/" in api_version:
        document["apiVersion"] = "v1"
    listed = [entry for info in served for entry in (_resource(info), *_subresources(info))]
    return {**document, "groupVersion": api_version, "resources": listed}


def _resource(info: ResourceInfo) -> Object:
    entry: Object = {
        "name": info.plural,
        "singularName": _singular(info),
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
        **_names(info),
    }
    if "list" in info.verbs:
        entry["storageVersionHash"] = _storage_hash(info)
    return entry


def _names(info: ResourceInfo) -> Object:
    names: Object = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    return {key: value for key, value in names.items() if value}


def _storage_hash(info: ResourceInfo) -> str:
    """Changes when objects are stored in another version; migrators compare it."""
    stored = f"{info.group}/{info.version}/{info.kind}".encode()
    return base64.b64encode(hashlib.sha256(stored).digest()[:8]).decode()


def _subresources(info: ResourceInfo) -> list[Object]:
    return [_subresource(info, name) for name in sorted(info.subresources)]


def _subresource(info: ResourceInfo, name: str) -> Object:
    group, version, kind = _KINDS.get(name, ("", "", info.kind))
    return {
        "name": f"{info.plural}/{name}",
        "singularName": "",
        "namespaced": info.namespaced,
        **({"group": group, "version": version} if group else {}),
        "kind": kind,
        "verbs": list(_VERBS.get(name, _STATUS_VERBS)),
    }


def _aggregated(*, core: bool) -> Object:
    groups = [""] if core else _group_names()
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(group) for group in groups],
    }


def _aggregated_group(group: str) -> Object:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [_aggregated_version(group, version) for version in _versions(group)],
    }


def _aggregated_version(group: str, version: str) -> Object:
    served = sorted(
        (info for info in RESOURCES if (info.group, info.version) == (group, version)),
        key=lambda info: info.plural,
    )
    resources = [_aggregated_resource(info) for info in served]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(info: ResourceInfo) -> Object:
    entry: Object = {
        "resource": info.plural,
        "responseKind": _response_kind("", "", info.kind),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": _singular(info),
        "verbs": list(info.verbs),
        **_names(info),
    }
    if info.subresources:
        entry["subresources"] = [
            _aggregated_subresource(info, name) for name in sorted(info.subresources)
        ]
    return entry


def _aggregated_subresource(info: ResourceInfo, name: str) -> Object:
    return {
        "subresource": name,
        "responseKind": _response_kind(*_KINDS.get(name, ("", "", info.kind))),
        "verbs": list(_VERBS.get(name, _STATUS_VERBS)),
    }


def _response_kind(group: str, version: str, kind: str) -> Object:
    """Empty group and version mean those of the resource."""
    return {"group": group, "version": version, "kind": kind}
