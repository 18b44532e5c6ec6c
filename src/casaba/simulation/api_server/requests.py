"""What is asked of the server, once the URL has been understood, and by whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from casaba.simulation.api_server.resources import ResourceInfo

Object = dict[str, Any]
"""An API object as JSON knows it. Whoever gets one from the store must not change it."""


def copied(value: Any) -> Any:
    """A copy of a JSON value that may be changed; several times faster than deepcopy."""
    if isinstance(value, dict):
        return {name: copied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [copied(member) for member in value]
    return value


@dataclass(frozen=True, kw_only=True)
class UserInfo:
    """Who asks (authentication.k8s.io/v1, UserInfo)."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = UserInfo(username="system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """One request for objects of a resource."""

    user: UserInfo
    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection."""
    resource: ResourceInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    """status, scale, binding, eviction, log, token, …; empty for the object itself."""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    body: bytes = b""
    user_agent: str = ""

    @property
    def dry_run(self) -> bool:
        """Whether everything happens but the change."""
        return self.query.get("dryRun") == "All"

    @property
    def field_manager(self) -> str:
        """Whose fields a write owns; by default the program's name, as the real server takes it."""
        return self.query.get("fieldManager") or self.user_agent.split("/")[0] or "unknown"
