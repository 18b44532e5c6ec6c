"""kubeconfig files: their entries, each of which can say where a wrong value stands."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casaba.kube.errors import KubeConfigError

_REMOVED = "was removed from Kubernetes; use a token or client certificate"
_UNSUPPORTED = {"auth-provider": _REMOVED, "username": _REMOVED, "password": _REMOVED}


@dataclass(frozen=True)
class Entry:
    """One cluster, user or context, or a mapping inside of one."""

    path: Path
    kind: str
    name: str
    values: Mapping[str, Any]
    prefix: str = ""

    def wrong(self, key: str, complaint: str) -> KubeConfigError:
        """An error that says where the value stands."""
        return KubeConfigError(
            f"kubeconfig {self.path}: {self.kind} {self.name!r}: {self.prefix}{key} {complaint}"
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

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty if absent; raises KubeConfigError."""
        values = self.values.get(key) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "must be a list of texts")
        return tuple(values)

    def lists_of_texts(self, key: str) -> dict[str, tuple[str, ...]]:
        """A mapping to lists of texts, empty if absent; raises KubeConfigError."""
        values = self.inside(key)
        if values is None:
            return {}
        return {str(name): values.texts(name) for name in values.values}

    def flag(self, key: str) -> bool:
        """A boolean, false if absent; raises KubeConfigError."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def inside(self, key: str) -> "Entry | None":
        """The mapping under a key, None if absent; raises KubeConfigError."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a mapping, not {type(value).__name__}")
        return Entry(self.path, self.kind, self.name, value, f"{self.prefix}{key}.")

    def each(self, key: str) -> "Iterator[Entry]":
        """The mappings in a list, none if it is absent; raises KubeConfigError."""
        values = self.values.get(key) or []
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.wrong(key, "must be a list of mappings")
        for place, value in enumerate(values):
            prefix = f"{self.prefix}{key}[{place}]."
            yield Entry(self.path, self.kind, self.name, value, prefix)

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

    def content(self, key: str) -> "tuple[bytes | None, Path | None]":
        """What KEY-data holds in base64, else what the file named by KEY holds, and that file."""
        encoded = self.text(f"{key}-data")
        if encoded:
            try:
                return base64.b64decode(encoded, validate=True), None
            except binascii.Error:
                raise self.wrong(f"{key}-data", "is not base64") from None
        path = self.file(key)
        return (path.read_bytes(), path) if path else (None, None)


@dataclass(frozen=True)
class _File:
    path: Path
    document: Mapping[str, Any]

    def entries(self, kind: str) -> list[Mapping[str, Any]]:
        entries = self.document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise KubeConfigError(f"kubeconfig {self.path}: {kind}s must be a list of mappings")
        return entries


@dataclass(frozen=True)
class Kubeconfig:
    """Files that were read; of equal names the first counts, as in kubectl."""

    files: tuple[_File, ...]

    @classmethod
    def read(cls, paths: Sequence[Path]) -> "Kubeconfig":
        """Read files, of which, if they are several, some may be absent; raises KubeConfigError."""
        there = [path for path in paths if path.exists()] or list(paths[:1])
        return cls(tuple(_File(path, _document(path)) for path in there))

    @property
    def names(self) -> str:
        """The files, as messages name them."""
        return ", ".join(str(file.path) for file in self.files)

    def current_context(self) -> Entry:
        """The context in use; raises KubeConfigError."""
        set_here = (file.document.get("current-context") for file in self.files)
        name = next((name for name in set_here if name), None)
        if not isinstance(name, str):
            raise KubeConfigError(
                f"kubeconfig {self.names}: current-context is not set; "
                "choose one with kubectl config use-context"
            )
        return self.entry("context", name)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of a kind by name; raises KubeConfigError, which lists the names there are."""
        known: list[str] = []
        for file in self.files:
            for candidate in file.entries(kind):
                if candidate.get("name") == name:
                    values = candidate.get(kind)
                    return Entry(file.path, kind, name, values if isinstance(values, dict) else {})
                known.append(repr(candidate.get("name")))
        there_are = ", ".join(known) or "none"
        raise KubeConfigError(
            f"kubeconfig {self.names}: no {kind} {name!r}; there are: {there_are}"
        )


def _document(path: Path) -> Mapping[str, Any]:
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
    return document
