"""Driver name, class and sockets exist once per cluster: helm asks the cluster, and refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from casaba.settings.host_paths import DRIVER_NAME
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.chart.rendering import CHART, NAMESPACE
from tests.cluster.helm import helm

RELEASE, IN_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


@pytest.fixture
async def server() -> AsyncIterator[SimulatedApiServer]:
    async with SimulatedApiServer() as server:
        yield server


async def said(
    server: SimulatedApiServer, folder: Path, annotations: Mapping[str, str] | None
) -> str:
    """What helm says of an install while the class is there, made by whom the annotations name.

    The simulated server lacks kinds of the chart, so that helm never gets to the end.
    """
    if annotations is not None:
        metadata = {"name": DRIVER_NAME, "annotations": dict(annotations)}
        server.seed(
            [
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClass",
                    "metadata": metadata,
                    "spec": {},
                }
            ]
        )
    config = folder / "kubeconfig"
    config.write_text(json.dumps(server.kubeconfig()))
    program = await asyncio.to_thread(helm)
    process = await asyncio.create_subprocess_exec(
        program,
        *("template", "casaba", CHART, "-n", NAMESPACE, "--dry-run=server"),
        f"--kubeconfig={config}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, words = await process.communicate()
    return words.decode()


@pytest.mark.parametrize(
    ("name", "namespace"), [("casaba", "other"), ("hami-dra", NAMESPACE), ("hami-dra", "gpu")]
)
async def test_another_release_is_named(
    name: str, namespace: str, server: SimulatedApiServer, tmp_path: Path
) -> None:
    words = await said(server, tmp_path, {RELEASE: name, IN_NAMESPACE: namespace})
    assert f"already has the release {name} in namespace {namespace}" in words
    assert f"helm uninstall {name} -n {namespace}" in words


async def test_a_class_of_nobodys_is_named(server: SimulatedApiServer, tmp_path: Path) -> None:
    words = await said(server, tmp_path, {})
    assert "belongs to no Helm release" in words
    assert f"kubectl delete deviceclass {DRIVER_NAME}" in words


@pytest.mark.parametrize("annotations", [None, {RELEASE: "casaba", IN_NAMESPACE: NAMESPACE}])
async def test_the_first_release_and_its_upgrades_go_on(
    annotations: Mapping[str, str] | None, server: SimulatedApiServer, tmp_path: Path
) -> None:
    words = await said(server, tmp_path, annotations)
    assert "release" not in words.partition("no matches for kind")[0].replace(
        "release manifest", ""
    )
