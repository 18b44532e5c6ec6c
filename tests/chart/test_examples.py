"""Every example is taken by the API server; of kinds that the simulated one lacks, their pods."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from casaba.simulation.api_server.resources import RESOURCES
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.chart.structure import misfits
from tests.component.api_server.kubectl import Kubectl

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*.yaml"))
WORKLOADS = sorted(path.name for path in (EXAMPLES / "workloads").glob("*.yaml"))
_KNOWN = {info.kind for info in RESOURCES}

Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    return list(yaml.safe_load_all(path.read_text()))


def for_the_server(objects: list[Object]) -> Iterator[Object]:
    """A Deployment or Job as a pod of its template."""
    for one in objects:
        if one["kind"] in _KNOWN:
            yield one
        else:
            template = one["spec"]["template"]
            metadata = {**template.get("metadata", {}), "name": one["metadata"]["name"]}
            yield {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with SimulatedApiServer() as server:
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(server.kubeconfig()))
        yield Kubectl(kubeconfig=config, folder=tmp_path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_an_example_is_taken(path: Path, kubectl: Kubectl) -> None:
    objects = documents(path)
    assert [m for one in objects for m in misfits(one)] == []
    text = yaml.safe_dump_all(for_the_server(objects))
    said = await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=text)
    assert len(said.splitlines()) == len(objects)
    assert "Warning" not in said


def test_the_page_names_every_workload() -> None:
    page = (EXAMPLES / "workloads" / "README.md").read_text()
    assert len(WORKLOADS) == 5
    assert all(f"`{name}`" in page for name in WORKLOADS)


def test_selectors_are_of_their_own_pods() -> None:
    for name in WORKLOADS:
        for one in documents(EXAMPLES / "workloads" / name):
            if one["kind"] == "Deployment":
                labels = one["spec"]["template"]["metadata"]["labels"].items()
                assert one["spec"]["selector"]["matchLabels"].items() <= labels
