"""What there is in a bed at one moment, so that what an installation leaves behind shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import cgroups
from tests.cluster.bed import Bed
from tests.cluster.node import Node
from tests.cluster.trees import is_empty, tree

# Kinds that live of their own: what happened, how the control plane does.
_RESTLESS = ("events", "events.events.k8s.io", "componentstatuses")
# Notes of the runtime, the kubelet and the bed's own driver on pods, which they make with the first
# pod or plugin and collect when they like.
_OF_OTHERS = (
    "/run/casaba-simulated",
    "/run/cni-addresses",
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet/actuated_pods_state",
    "/var/lib/kubelet/allocated_pods_state",
    "/var/lib/kubelet/dra_health_state",
    "/var/lib/kubelet/dra_manager_state",
    "/var/lib/kubelet/pods",
    "/var/log/containers",
    "/var/log/pods",
)
_FOLDERS = ("/run", "/var/lib", "/var/log")
# They belong to nobody alone; somebody may have them mounted, so nobody may remove them.
_SHARED = ("/run/cdi", "/run/nvidia")


@dataclass(frozen=True)
class Traces:
    """Everything that can be left behind; each entry is a line for people."""

    objects: frozenset[str]
    files: frozenset[str]
    mounts: frozenset[str]
    processes: frozenset[str]

    def difference(self, later: Traces) -> str:
        """What is there later and was not (+), or was and is not any more (-), line by line."""
        return "\n".join(
            line
            for kind in ("objects", "files", "mounts", "processes")
            for line in _differences(getattr(self, kind), getattr(later, kind))
        )


def _differences(before: frozenset[str], after: frozenset[str]) -> Iterator[str]:
    yield from (f"+ {entry}" for entry in sorted(after - before))
    yield from (f"- {entry}" for entry in sorted(before - after))


def traces(bed: Bed) -> Traces:
    """All objects of all kinds; files, mounts and processes of all nodes.

    Objects by what people and controllers wrote; status, versions and what a Lease says are left
    out, and files by their names alone: they change by themselves.
    """
    return Traces(
        objects=frozenset(_objects(bed)),
        files=frozenset(line for node in bed.nodes for line in files(node)),
        mounts=frozenset(line for node in bed.nodes for line in _mounts(node)),
        processes=frozenset(line for node in bed.nodes for line in _processes(node)),
    )


def _objects(bed: Bed) -> Iterator[str]:
    served = bed.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
    kinds = ",".join(kind for kind in served if kind not in _RESTLESS)
    listed = bed.kubectl("get", kinds, "--all-namespaces", "-o", "json")
    yield from (_told(item) for item in json.loads(listed.stdout)["items"])


def _told(item: dict[str, Any]) -> str:
    metadata = item["metadata"]
    place = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    kept = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")
    content = {key: metadata[key] for key in kept if key in metadata}
    if item["kind"] != "Lease":
        left_out = ("apiVersion", "kind", "metadata", "status")
        content |= {key: value for key, value in item.items() if key not in left_out}
    return f"{item['kind']} {place}{metadata['name']} {json.dumps(content, sort_keys=True)}"


def files(node: Node) -> Iterator[str]:
    """Every file and folder of a node that is not the runtime's or the kubelet's own."""
    for folder in _FOLDERS:
        outside = node.path(folder)
        for path in tree(outside):
            inside = f"{folder}/{path.relative_to(outside)}"
            if not _is_of_others(inside) and not _is_shared_and_empty(inside, path):
                yield f"{node.name}: {inside}"


def _is_of_others(inside: str) -> bool:
    return any(inside == one or inside.startswith(f"{one}/") for one in _OF_OTHERS)


def _is_shared_and_empty(inside: str, path: Path) -> bool:
    return inside in _SHARED and is_empty(path)


def _mounts(node: Node) -> Iterator[str]:
    """Below the node's own folders: elsewhere the machine's come and go."""
    table = node.run_in_namespaces(["/bin/cat", "/proc/self/mounts"]).stdout
    points = (line.split()[1] for line in table.splitlines())
    yield from (f"{node.name}: mount {point}" for point in points if point.startswith(_FOLDERS))


def _processes(node: Node) -> Iterator[str]:
    for pid in cgroups.processes(node.bed.cgroup(node.name)):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        yield f"{node.name}: process {b' '.join(words).decode(errors='replace').strip()}"
