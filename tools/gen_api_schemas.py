"""Writes the schemas of the simulated API server's kinds from a real kube-apiserver's OpenAPI v3.

    python tools/gen_api_schemas.py --kubeconfig FILE     asks the running server, by kubectl
    python tools/gen_api_schemas.py --folder FOLDER       reads Kubernetes' api/openapi-spec/v3

Keeps what machines need (types, defaults, list types, merge keys) and drops every description.
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from casaba.simulation.api_server.resources import RESOURCES

OUTPUT = Path("src/casaba/simulation/api_server/schemas/definitions.json")

REFERENCE = "#/components/schemas/"

BODY_KINDS = (
    ("v1", "Binding"),
    ("v1", "DeleteOptions"),
    ("v1", "Status"),
    ("policy/v1", "Eviction"),
    ("authentication.k8s.io/v1", "TokenRequest"),
)
"""Kinds that are sent to or come back from subresources, beside the resources' own."""

Document = dict[str, Any]


def main() -> None:
    """Reads every group version that the simulated server serves; writes one file."""
    fetch = _source()
    definitions: Document = {}
    for api_version in _api_versions():
        schemas = fetch(api_version)["components"]["schemas"]
        for name in _reachable(schemas, _roots(schemas)):
            definitions[name] = _bare(schemas[name])
    text = json.dumps(definitions, sort_keys=True, separators=(",", ":"))
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(text + "\n", encoding="utf-8")


def _source() -> Callable[[str], Document]:
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--kubeconfig")
    source.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.folder is not None:
        return lambda api_version: _from_folder(given.folder, api_version)
    return lambda api_version: _from_server(given.kubeconfig, api_version)


def _path(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _from_folder(folder: Path, api_version: str) -> Document:
    name = _path(api_version).replace("/", "__")
    document: Document = json.loads((folder / f"{name}_openapi.json").read_text("utf-8"))
    return document


def _from_server(kubeconfig: str, api_version: str) -> Document:
    path = f"/openapi/v3/{_path(api_version)}"
    command = ["kubectl", "--kubeconfig", kubeconfig, "get", "--raw", path]
    document: Document = json.loads(subprocess.check_output(command))
    return document


def _kinds() -> Iterable[tuple[str, str]]:
    for info in RESOURCES:
        yield info.api_version, info.kind
        yield info.api_version, f"{info.kind}List"
    yield from BODY_KINDS


def _api_versions() -> list[str]:
    return sorted({info.api_version for info in RESOURCES})


def _roots(schemas: Document) -> Iterable[str]:
    wanted = set(_kinds())
    for name, schema in schemas.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            if (f"{gvk['group']}/{gvk['version']}".lstrip("/"), gvk["kind"]) in wanted:
                yield name


def _reachable(schemas: Document, roots: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_references(schemas[name]))
    return seen


def _references(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(REFERENCE)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _bare(schema: Any) -> Any:
    """The schema without its prose."""
    if isinstance(schema, list):
        return [_bare(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {}
    for key, value in schema.items():
        if key == "properties":
            bare[key] = {name: _bare(member) for name, member in value.items()}
        elif key != "description":
            bare[key] = _bare(value)
    return bare


if __name__ == "__main__":
    main()
