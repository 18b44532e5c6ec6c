"""The OpenAPI v3 documents (KEP-2896): what kubectl validates, applies and explains by.

Only the parts that clients look at: schemas, paths, the kind of each operation, its parameters.
Of OpenAPI v2 there is an empty document: kubectl reads it to be sure that a kind is unknown.
"""

import hashlib
import json
from functools import cache

from casaba.simulation.api_server import schemas
from casaba.simulation.api_server.discovery import version_path
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo

INDEX = "/openapi/v3"
OLD = "/openapi/v2"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_INFO: Object = {"title": "Kubernetes, simulated by casaba", "version": "1.36"}

_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
# Verb of the API, method of HTTP, parameters in the query.
_ON_ALL = (
    ("list", "get", ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion")),
    ("create", "post", _WRITE_PARAMETERS),
    ("deletecollection", "delete", ("dryRun", "fieldSelector", "labelSelector")),
)
_ON_ONE = (
    ("get", "get", ()),
    ("update", "put", _WRITE_PARAMETERS),
    ("patch", "patch", (*_WRITE_PARAMETERS, "force")),
    ("delete", "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
)
_ACTIONS = {"create": "post", "update": "put"}
_TYPES = {"force": "boolean", "limit": "integer", "gracePeriodSeconds": "integer"}


def openapi_document(path: str, accept: str = "") -> bytes | None:
    """The body to answer GET of a path with; None if it is not an OpenAPI path.

    JSON, but for v2 where the client accepts protobuf only, as kubectl does.
    """
    path = path.rstrip("/")
    if path == OLD:
        return _old_protobuf() if _PROTOBUF in accept else _old_json()
    if path == INDEX:
        return _index()
    for version, served in _served_paths().items():
        if path == INDEX + served:
            return _document(version)
    return None


@cache
def _served_paths() -> dict[str, str]:
    return {info.api_version: version_path(info) for info in RESOURCES}


@cache
def _index() -> bytes:
    """Where the documents are; the hash lets clients keep them until they change."""
    paths = {
        served.lstrip("/"): {"serverRelativeURL": f"{INDEX}{served}?hash={_hash(version)}"}
        for version, served in sorted(_served_paths().items())
    }
    return _encoded({"paths": paths})


def _hash(api_version: str) -> str:
    return hashlib.sha256(_document(api_version)).hexdigest().upper()


@cache
def _document(api_version: str) -> bytes:
    paths: Object = {}
    for info in RESOURCES:
        if info.api_version == api_version:
            paths |= _paths(info)
    return _encoded(
        {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": paths,
            "components": {"schemas": schemas.openapi(api_version)},
        }
    )


def _old_json() -> bytes:
    return _encoded({"swagger": "2.0", "info": _INFO, "paths": {}})


def _old_protobuf() -> bytes:
    """The same as openapi.v2.Document: swagger is field 1, info field 2 with title and version."""
    info = b"".join(
        _field(number, _INFO[key].encode()) for number, key in ((1, "title"), (2, "version"))
    )
    return _field(1, b"2.0") + _field(2, info)


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def _encoded(document: Object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _paths(info: ResourceInfo) -> Object:
    """The paths of a resource: all of them, those of a namespace, one, and its parts."""
    base = version_path(info)
    scope = f"{base}/namespaces/{{namespace}}" if info.namespaced else base
    collection, item = f"{scope}/{info.plural}", f"{scope}/{info.plural}/{{name}}"
    found = {collection: _operations(info, _ON_ALL), item: _operations(info, _ON_ONE)}
    if info.namespaced and "list" in info.verbs:
        found[f"{base}/{info.plural}"] = _operations(info, _ON_ALL[:1])
    if "status" in info.subresources:
        found[f"{item}/status"] = _operations(info, _ON_ONE[:3])
    return {path: operations for path, operations in found.items() if operations}


def _operations(info: ResourceInfo, verbs: tuple[tuple[str, str, tuple[str, ...]], ...]) -> Object:
    return {
        method: _operation(info, verb, parameters)
        for verb, method, parameters in verbs
        if verb in info.verbs
    }


def _operation(info: ResourceInfo, verb: str, parameters: tuple[str, ...]) -> Object:
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    operation: Object = {
        "parameters": [_parameter(name) for name in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": kind,
    }
    if verb == "patch":
        content: Object = {type_: {"schema": {"type": "object"}} for type_ in _PATCH_TYPES}
        operation["requestBody"] = {"content": content, "required": True}
    return operation


def _parameter(name: str) -> Object:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": schema}
