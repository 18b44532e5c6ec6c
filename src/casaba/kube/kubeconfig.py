"""The kubeconfig file: its entries, each of which can say where a wrong value stands."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casaba.kube.errors import KubeConfigError

_UNSUPPORTED = {
    "exec": "runs a program for credentials, which casaba does not do yet; "
    "use a token, tokenFile or client certificate",
    "auth-provider": "was removed from Kubernetes; use a token or client certificate",
    "username": "was removed from Kubernetes; use a token or client certificate",
    "password": "was removed from Kubernetes; use a token or client certificate",
    "as": "is not supported; use credentials of the user to act as",
    "as-uid": "is not supported; use credentials of the user to act as",
    "as-groups": "is not supported; use credentials of the user to act as",
    "as-user-extra": "is not supported; use credentials of the user to act as",
    "proxy-url": "is not supported; the API server must be reachable directly",
}


@dataclass(frozen=True)
class Entry:
    """One cluster, user or context."""

    path: Path
    kind: str
    name: str
    values: Mapping[str, Any]

    def wrong(self, key: str, complaint: str) -> KubeConfigError:
        """An error that says where the value stands."""
        return KubeConfigError(
            f"kubeconfig {self.path}: {self.kind} {self.name!r}: {key} {complaint}"
        )

    def refuse_unsupported(self) -> None:
        """Raise KubeConfigError for what would change who we are or whom we ask."""
        for key, complaint in _UNSUPPORTED.items():
            if self.values.get(key):
                raise self.wrong(key, complaint)

    def text(self, key: str, *, required: bool = False) -> str:
        """A text, empty if absent; raises KubeConfigError."""
        value = self.values.get(key)
        if value is None or value == "":
            if required:
                raise self.wrong(key, "is missing")
            return ""
        if not isinstance(value, str):
            raise self.wrong(key, f"must be a text, not {type(value).__name__}")
        return value

    def flag(self, key: str) -> bool:
        """A boolean, false if absent; raises KubeConfigError."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def file(self, key: str) -> Path | None:
        """A readable file, relative to the kubeconfig's folder; raises KubeConfigError."""
        name = self.text(key)
        if not name:
            return None
        path = self.path.parent / name
        try:
            with path.open("rb"):
                return path
        except OSError as error:
            raise self.wrong(key, f"names {path}: {error.strerror}") from error

    def content(self, key: str) -> bytes | None:
        """What KEY-data holds in base64, else what the file named by KEY holds."""
        encoded = self.text(f"{key}-data")
        if encoded:
            try:
                return base64.b64decode(encoded, validate=True)
            except binascii.Error:
                raise self.wrong(f"{key}-data", "is not base64") from None
        path = self.file(key)
        return path.read_bytes() if path else None


@dataclass(frozen=True)
class Kubeconfig:
    """A kubeconfig that was read."""

    path: Path
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Kubeconfig":
        """Read a file; raises KubeConfigError."""
        import yaml  # 4 MB that a pod with a service account never needs

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            document = yaml.load(path.read_bytes(), Loader=loader)
        except OSError as error:
            raise KubeConfigError(
                f"kubeconfig {path}: {error.strerror}; pass a readable file with --kubeconfig"
            ) from error
        except yaml.MarkedYAMLError as error:
            mark = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise KubeConfigError(f"kubeconfig {path}: not YAML{mark}: {error.problem}") from None
        except yaml.YAMLError as error:
            raise KubeConfigError(f"kubeconfig {path}: not YAML: {error}") from None
        if not isinstance(document, dict):
            raise KubeConfigError(f"kubeconfig {path}: holds no mapping; is it a kubeconfig?")
        return cls(path, document)

    def current_context(self) -> Entry:
        """The context in use; raises KubeConfigError."""
        name = self.document.get("current-context")
        if not isinstance(name, str) or not name:
            raise KubeConfigError(
                f"kubeconfig {self.path}: current-context is not set; "
                "choose one with kubectl config use-context"
            )
        return self.entry("context", name)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of a kind by name; raises KubeConfigError, which lists the names there are."""
        entries = self.document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise KubeConfigError(f"kubeconfig {self.path}: {kind}s must be a list of mappings")
        for candidate in entries:
            if candidate.get("name") == name:
                values = candidate.get(kind)
                return Entry(self.path, kind, name, values if isinstance(values, dict) else {})
        known = ", ".join(repr(e.get("name")) for e in entries) or "none"
        raise KubeConfigError(f"kubeconfig {self.path}: no {kind} {name!r}; there are: {known}")
