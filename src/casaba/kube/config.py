"""Where the API server is and how we prove who we are, in one value. Secrets stay out of `repr`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """As whom to ask; we ourselves must be allowed to (RBAC verb `impersonate`)."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that supplies credentials (client.authentication.k8s.io/v1, KEP-541)."""

    api_version: str
    command: str
    """A path, or a name to look up in PATH."""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Beside our own."""
    install_hint: str = ""
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    """Whether it may, or must, ask the person at the terminal."""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """What it is told of the cluster; None: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeConfig:
    """One API server and one identity."""

    origin: str
    """What to name in messages: the file and context, or the service account."""
    server: str
    """Base URL, http or https, without a slash at its end."""
    namespace: str = "default"
    authority_pem: str | None = None
    """Certificates to trust; None means the system's."""
    authority_file: Path | None = None
    """Where they come from; read again when it changes."""
    insecure: bool = False
    """Accept any server certificate."""
    tls_server_name: str | None = None
    """Name to expect in the server's certificate instead of the URL's host."""
    proxy_url: str | None = field(default=None, repr=False)
    """An http or https proxy to go through."""
    client_certificate_pem: bytes | None = None
    client_key_pem: bytes | None = field(default=None, repr=False)
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None
    """Where they come from; read again when one of the two changes."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again as it changes; goes before `token`."""
    exec_plugin: ExecPlugin | None = None
    """Asked for a token unless one is given, or for a client certificate."""
    impersonate: Impersonation | None = None
