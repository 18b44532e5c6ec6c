"""The uninstall's order on real DaemonSets; their pods stand in for agents and cleaners.

What each does to its node is a mark in a folder of the node, so that the order shows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import DAEMON_SETS, NAMESPACES, PODS, KubeClient, load_config
from casaba.services.uninstall.nodes import NodesNotClean, clean_nodes
from casaba.settings.uninstall import UninstallSettings
from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE

AGENT, CLEANER = "agent", "cleaner"
PODS_AS_THEY_ARE = PODS.decoded_as(dict)
_LIMIT_S = 120.0
_SOON_S = 45.0

Object = dict[str, Any]


def daemon_set(name: str, *, first: str) -> Object:
    """Its pods run `first` to the end, then wait, on the nodes with cards."""
    shell = {"image": SAMPLE, "terminationMessagePolicy": "FallbackToLogsOnError"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "nodeSelector": {"gpu": "on"},
                    "initContainers": [
                        {"name": "clean", "command": ["bash", "-c", first], **shell}
                    ],
                    "containers": [{"name": "done", "command": ["sleep", "1000000"], **shell}],
                },
            },
        },
    }


@pytest.fixture
async def client(bed: Bed) -> AsyncIterator[KubeClient]:
    async with KubeClient(load_config(bed.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: KubeClient) -> AsyncIterator[str]:
    """A namespace with an agent in it."""
    name = f"uninstall-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    await client.create(DAEMON_SETS, daemon_set(AGENT, first="true"), namespace=name)
    yield name
    await client.delete(NAMESPACES, name)


def settings(bed: Bed, namespace: str, cleaner: Path, timeout_s: float) -> UninstallSettings:
    return UninstallSettings(
        namespace=namespace,
        kubeconfig=bed.kubeconfig,
        agent=AGENT,
        cleaner=cleaner,
        timeout_s=timeout_s,
        poll_s=0.2,
    )


async def left(client: KubeClient, namespace: str) -> list[str]:
    """Names of all DaemonSets, and of pods that are not being deleted."""
    sets = (await client.list(DAEMON_SETS, namespace=namespace)).items
    pods = (await client.list(PODS_AS_THEY_ARE, namespace=namespace)).items
    stay = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
    return [one["metadata"]["name"] for one in (*sets, *stay)]


async def test_nothing_is_left(
    bed: Bed, client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    cleaner = tmp_path / "cleaner.json"
    cleaner.write_text(json.dumps(daemon_set(CLEANER, first="true")))
    told: list[str] = []
    for _ in range(2):  # done again it comes to the same
        await clean_nodes(settings(bed, namespace, cleaner, _LIMIT_S), told.append)
        assert await left(client, namespace) == []
    assert told[0] == "ending the agents"
    assert told.count("every node is clean") == 2


async def test_a_node_that_is_not_clean_is_named_with_its_last_words(
    bed: Bed, client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    cleaner = tmp_path / "cleaner.json"
    first = "echo 'nothing was removed: 1 prepared claim' >&2; exit 1"
    cleaner.write_text(json.dumps(daemon_set(CLEANER, first=first)))
    with pytest.raises(NodesNotClean, match=r"node edge-\d: clean ended with 1: nothing was"):
        await clean_nodes(settings(bed, namespace, cleaner, _SOON_S), print)
    sets = (await client.list(DAEMON_SETS, namespace=namespace)).items
    assert [one["metadata"]["name"] for one in sets] == []
