"""A number of a values file arrives as it was written, however large it is.

Helm reads numbers of files as floating ones, which a template writes as 1e+07.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.rendering import CHART, Object, rendered

SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())
LARGE = 10_000_000
# What must be so for every number to be used.
USED = ('monitor.service.type="NodePort"',)


def integers(schema: Object = SCHEMA, path: str = "") -> Iterator[tuple[str, int]]:
    """The path of every value that may be an integer, with one that it may be."""
    if reference := schema.get("$ref"):
        schema = SCHEMA["$defs"][reference.removeprefix("#/$defs/")]
    for one in (schema, *schema.get("oneOf", ())):
        if "integer" in one.get("type", ()):
            yield path, min(LARGE, one.get("maximum", LARGE))
    for key, below in schema.get("properties", {}).items():
        yield from integers(below, f"{path}.{key}".lstrip("."))
    if isinstance(below := schema.get("additionalProperties"), dict):
        yield from integers(below, f"{path}.memory")


def test_all_kinds_of_integers_are_found() -> None:
    paths = {path for path, _ in integers()}
    assert {"conversion.defaultMemory", "webhook.pdb.maxUnavailable"} < paths
    assert {"monitor.service.port", "controller.resources.limits.memory"} < paths


@pytest.mark.parametrize(("path", "number"), [*integers()])
def test_a_number_stays_as_it_is(path: str, number: int, tmp_path: Path) -> None:
    value: object = number
    for key in reversed(path.split(".")):
        value = {key: value}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(value))
    written = yaml.safe_dump_all(rendered(*USED, options=[f"--values={file}"]).objects)
    assert re.search(rf"(?<![0-9.]){number}(?![0-9.])", written)
    assert not re.search(r"[0-9]e\+[0-9]", written)
