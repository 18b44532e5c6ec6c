"""What admission is asked about: one write, as admission plugins and webhooks see it."""

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from casaba.simulation.api_server.requests import Object, ResourceRequest

_OPERATIONS = {
    "create": "CREATE",
    "update": "UPDATE",
    "patch": "UPDATE",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_OF_QUERY = ("fieldManager", "fieldValidation")


@dataclass(frozen=True, kw_only=True)
class Attributes:
    """A write before it is stored."""

    request: ResourceRequest
    operation: str
    """CREATE, UPDATE or DELETE."""
    object: Object | None
    old: Object | None

    @property
    def subject(self) -> Object:
        """The new object, or the old one of a deletion."""
        return self.object or self.old or {}

    @property
    def name(self) -> str:
        """The object's name as far as the client gave one; it may yet be generated."""
        if self.operation == "CREATE" and not self.request.subresource:
            return str(self.subject.get("metadata", {}).get("name", ""))
        return self.request.name

    @property
    def is_namespace(self) -> bool:
        """Whether it is about a namespace itself, which counts as being inside."""
        info = self.request.resource
        return info.plural == "namespaces" and not info.group

    @property
    def namespace(self) -> str:
        """Where the object is."""
        return self.name if self.is_namespace else self.request.namespace

    @property
    def kind(self) -> Object:
        """Group, version and kind of the object; subresources may have one of their own."""
        info = self.request.resource
        version, kind = info.api_version, info.kind
        if self.request.subresource not in ("", "status"):
            version = self.subject.get("apiVersion") or version
            kind = self.subject.get("kind") or kind
        group, _, version = version.rpartition("/")
        return {"group": group, "version": version, "kind": kind}

    @property
    def options(self) -> Object:
        """CreateOptions, UpdateOptions or DeleteOptions (meta.k8s.io/v1)."""
        query = self.request.query
        options: Object = {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"}
        if self.operation == "DELETE":
            options |= _delete_options(self.request.body)
        if self.request.dry_run:
            options["dryRun"] = ["All"]
        if self.operation != "DELETE":
            options |= {field: query[field] for field in _OF_QUERY if query.get(field)}
        return options

    def with_object(self, object_: Object) -> "Attributes":
        """The same write of another object."""
        return replace(self, object=object_)


def attributes_of(
    request: ResourceRequest, object_: Object | None, old: Object | None
) -> Attributes:
    """How admission sees a request; one that finds no object to change creates it."""
    operation = _OPERATIONS[request.verb]
    if operation == "UPDATE" and old is None:
        operation = "CREATE"
    return Attributes(request=request, operation=operation, object=object_, old=old)


def _delete_options(body: bytes) -> Object:
    try:
        options: Any = msgspec.json.decode(body) if body else {}
    except msgspec.DecodeError:
        return {}  # refused where it is carried out
    if not isinstance(options, dict):
        return {}
    return {key: value for key, value in options.items() if key not in ("kind", "apiVersion")}
