"""What an image is made of, as CycloneDX: Python packages, Debian packages, Go modules.

The same content gives the same document: it has no times and no serial number of its own.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]

_SPEC_VERSION = "1.6"
"""Of CycloneDX (ECMA-424)."""

_GO_MODULE = re.compile(r"^\t(?:mod|dep)\t(?P<name>\S+)\t(?P<version>v\S+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the document; returns the exit code."""
    asked = _parser().parse_args(arguments)
    components = [
        *(found for folder in asked.packages for found in python_packages(folder)),
        *(found for file in asked.dpkg_status for found in debian_packages(file.read_text())),
        *(found for file in asked.go_modules for found in go_modules(file.read_text())),
    ]
    json.dump(document(asked.name, components), sys.stdout, indent=1)
    print()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--name", required=True, help="of the image")
    add("--packages", type=Path, action="append", default=[], help="folder with dist-info folders")
    add("--dpkg-status", type=Path, action="append", default=[], help="/var/lib/dpkg/status")
    add("--go-modules", type=Path, action="append", default=[], help="output of go version -m")
    return parser


def document(name: str, components: Iterable[Component]) -> dict[str, Any]:
    """A bill of materials; each component once, in order of its package URL."""
    unique = {component["purl"]: component for component in components}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": _SPEC_VERSION,
        "version": 1,
        "metadata": {"component": {"type": "container", "name": name}},
        "components": [unique[purl] for purl in sorted(unique)],
    }


def python_packages(folder: Path) -> Iterator[Component]:
    """What pip has put into a folder, with the licences that the packages tell."""
    for found in distributions(path=[str(folder)]):
        name = re.sub(r"[-_.]+", "-", found.name).lower()
        yield _component("pypi", name, found.version) | _licences(found)


def _licences(found: Distribution) -> Component:
    """By PEP 639 an expression; before it anything, of which only a short one is a name."""
    metadata = found.metadata
    if expression := metadata["License-Expression"]:
        return {"licenses": [{"expression": expression}]}
    told = (metadata["License"] or "").strip()
    if told and "\n" not in told:
        return {"licenses": [{"license": {"name": told}}]}
    return {}


def debian_packages(status: str) -> Iterator[Component]:
    """What dpkg says is installed."""
    for paragraph in status.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z]\S*: ", line)
        )
        if fields.get("Status") == "install ok installed":
            name = f"debian/{fields['Package']}"
            yield _component("deb", name, fields["Version"], arch=fields["Architecture"])


def go_modules(told: str) -> Iterator[Component]:
    """The modules that `go version -m` reads from programs."""
    for line in told.splitlines():
        if found := _GO_MODULE.match(line):
            yield _component("golang", found["name"], found["version"])


def _component(kind: str, name: str, version: str, **qualifiers: str) -> Component:
    suffix = "&".join(f"{key}={quote(value)}" for key, value in sorted(qualifiers.items()))
    purl = f"pkg:{kind}/{quote(name)}@{quote(version)}"
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"{purl}?{suffix}" if suffix else purl,
    }


if __name__ == "__main__":
    sys.exit(main())
