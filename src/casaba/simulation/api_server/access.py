"""The question that permission answers: may this user do that, on objects like these?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from casaba.simulation.api_server.field_selectors import FieldTerm, field_terms, required_name
from casaba.simulation.api_server.requests import Object, ResourceRequest, UserInfo
from casaba.simulation.api_server.statuses import ApiError

Objects = Callable[[str], Iterable[Object]]
"""The cluster's objects of a resource, named by its plural."""

MANY = frozenset({"list", "watch", "deletecollection"})


@dataclass(frozen=True, kw_only=True)
class Access:
    """Something that a user wants to do: a verb on a resource, or on a path if that is given."""

    user: UserInfo
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: tuple[FieldTerm, ...] = ()
    """What a list, watch or deletecollection is limited to."""
    path: str = ""

    @property
    def whole_resource(self) -> str:
        """`resource/subresource`, as roles spell it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        if self.path:
            return f'User "{self.user.username}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'User "{self.user.username}" cannot {self.verb} resource "{self.whole_resource}" '
            f'in API group "{self.group}" {where}'
        )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether somebody may, and why or why not, as reviews tell it."""

    allowed: bool
    reason: str = ""


def access_of(request: ResourceRequest) -> Access:
    """What a request wants, with the name that a field selector limits it to."""
    fields = _field_terms(request) if request.verb in MANY else ()
    name = request.name or required_name(fields) or ""
    info = request.resource
    # A namespace is in itself; only lists of namespaces and new ones are outside.
    new = request.verb == "create" and not request.subresource
    inside = request.name if info.plural == "namespaces" and not new else ""
    return Access(
        user=request.user,
        verb=request.verb,
        group=info.group,
        resource=info.plural,
        subresource=request.subresource,
        namespace=request.namespace or inside,
        name="" if new else name,
        fields=fields,
    )


def named(objects: Objects, plural: str, namespace: str, name: str) -> Object | None:
    """One object, None if there is none such."""
    for found in objects(plural):
        metadata = found["metadata"]
        if metadata["name"] == name and metadata.get("namespace", "") == namespace:
            return found
    return None


def _field_terms(request: ResourceRequest) -> tuple[FieldTerm, ...]:
    """A selector that can't be understood limits nothing here, and is refused later."""
    try:
        return field_terms(request.resource, request.query.get("fieldSelector", ""))
    except ApiError:
        return ()
