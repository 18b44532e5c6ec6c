"""Which request each verb makes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request; `verb` is Kubernetes' word for it, `method` HTTP's."""

    verb: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


def reading(path: str, query: Mapping[str, str] | None) -> Call:
    """An object or subresource in whatever form it has."""
    return Call(verb="get", method="GET", path=path, query=query or {}, accept="*/*")


def watching(
    path: str, selection: Mapping[str, str], resource_version: str | None, timeout_s: int
) -> Call:
    """Changes after a version; after None, all objects first (KEP-3157)."""
    start = (
        {"resourceVersion": resource_version}
        if resource_version is not None
        else {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    )
    query = {
        **selection,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_s),
        **start,
    }
    return Call(verb="watch", method="GET", path=path, query=query)


def selection(label_selector: str, field_selector: str) -> dict[str, str]:
    """The part of a query that chooses objects; empty selectors choose all."""
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in query.items() if value}
