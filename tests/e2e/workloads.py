"""Pods and claims for the tests of this folder, and what they say."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE
from tests.cluster.waiting import wait_until

SCENARIO = Path(__file__).parents[2] / "examples" / "scenario"
DRIVER = "hami-core-gpu.project-hami.io"
SCENARIO_GPU = "GPU-13e066b9-098c-8932-9d26-ea75a943d6ba"

POD_TIMEOUT_S = 90.0
"""A prepare that fails at first is tried again on the kubelet's back-off."""

SLICE_TIMEOUT_S = 60.0

Request = tuple[str, str, int]
"""Name, memory as a quantity, cores in percent."""


def claim(name: str, *requests: Request, all_of_one_card: bool = True) -> dict[str, Any]:
    """A claim; with several requests, by default all on one card."""
    devices: dict[str, Any] = {"requests": [_request(*request) for request in requests]}
    if all_of_one_card and len(requests) > 1:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/uuid"}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }


def _request(name: str, memory: str, cores: int) -> dict[str, Any]:
    capacity = {"requests": {"memory": memory, "cores": cores}}
    return {"name": name, "exactly": {"deviceClassName": DRIVER, "capacity": capacity}}


def container(name: str, *claims: str) -> dict[str, Any]:
    """A container that waits, with claims as `claim` or `claim/request`."""
    entries = [dict(zip(("name", "request"), text.split("/"), strict=False)) for text in claims]
    return {
        "name": name,
        "image": SAMPLE,
        "command": ["sleep", "1000000"],
        "resources": {"claims": entries},
    }


def pod(
    name: str, claims: Sequence[str], containers: Sequence[dict[str, Any]], node: str = "edge-1"
) -> dict[str, Any]:
    """A pod of one node that uses claims by their own names."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "containers": list(containers),
            "resourceClaims": [{"name": text, "resourceClaimName": text} for text in claims],
        },
    }


def classic_pod(name: str, **resources: str) -> dict[str, Any]:
    """A pod that waits, with resources of `nvidia.com`."""
    limits = {f"nvidia.com/{kind}": amount for kind, amount in resources.items()}
    waiting = container("c") | {"resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [waiting]},
    }


@contextlib.contextmanager
def applied(bed: Bed, *objects: dict[str, Any] | Path) -> Iterator[None]:
    """Objects or files, as they are, on the API server for a while; gone, with all that they
    held, afterwards."""
    files = [argument for path in objects if isinstance(path, Path) for argument in ("-f", path)]
    inline = [object_ for object_ in objects if isinstance(object_, dict)]
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": inline}) if inline else None
    bed.kubectl("apply", *map(str, files), *(["-f", "-"] if inline else []), stdin=stdin)
    try:
        yield
    finally:
        read = [yaml.safe_load(path.read_text()) for path in objects if isinstance(path, Path)]
        _remove(bed, [*inline, *read])


def _remove(bed: Bed, objects: Sequence[dict[str, Any]]) -> None:
    """Pods first: a claim deleted while it is allocated goes in one step with its allocation, and
    the scheduler does not look again at pods that waited for the room (it hears no deletions)."""
    pods = [item["metadata"]["name"] for item in objects if item["kind"] == "Pod"]
    claims = [item["metadata"]["name"] for item in objects if item["kind"] == "ResourceClaim"]
    _delete(bed, "pod", pods)
    wait_until(
        f"claims {claims} are free",
        lambda: not any(_is_allocated(bed, name) for name in claims),
        POD_TIMEOUT_S,
    )
    _delete(bed, "resourceclaim", claims)


def _delete(bed: Bed, kind: str, names: Sequence[str]) -> None:
    if names:
        bed.kubectl("delete", kind, *names, "--ignore-not-found", "--grace-period=1")


def _is_allocated(bed: Bed, claim: str) -> bool:
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{claim}"
    found = bed.api.object(path) or {}
    return "allocation" in found.get("status", {})


def status(bed: Bed, name: str) -> dict[str, Any]:
    """A pod's status; empty if there is no such pod."""
    found = bed.api.object(f"/api/v1/namespaces/default/pods/{name}")
    return dict(found["status"]) if found else {}


def is_running(bed: Bed, name: str) -> bool:
    """Whether all containers of a pod are ready."""
    told = status(bed, name).get("containerStatuses", [])
    return bool(told) and all(entry["ready"] for entry in told)


def wait_for_pod(bed: Bed, name: str) -> None:
    """Until all containers of a pod run; describes the pod if they don't."""
    wait_until(
        f"pod {name} runs",
        lambda: is_running(bed, name),
        POD_TIMEOUT_S,
        explain=lambda: bed.kubectl("describe", "pod", name, check=False).stdout,
    )


def run_in(bed: Bed, name: str, *command: str, container: str | None = None) -> str:
    """What a command says in a pod's container."""
    chosen = ["-c", container] if container else []
    return bed.kubectl("exec", name, *chosen, "--", *command).stdout


def memory_mib(bed: Bed, name: str, container: str | None = None) -> int:
    """Total memory of the card as nvidia-smi shows it in a container, in MiB."""
    query = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")
    return int(run_in(bed, name, "nvidia-smi", *query, container=container))


def allocatable_mib(
    bed: Bed,
    name: str,
    container: str | None = None,
    *,
    chunk_mib: int = 64,
    program: str = "alloc_until_refused",
) -> int:
    """What a process of a container can really allocate, in chunks, in MiB."""
    command = (program, f"--chunk-mib={chunk_mib}")
    said = run_in(bed, name, *command, container=container).splitlines()
    taken = [line for line in said if line.endswith(" MiB allocated")]
    assert said[-1].endswith(" MiB refused: CUDA_ERROR_OUT_OF_MEMORY"), said
    return len(taken) * chunk_mib


@contextlib.contextmanager
def holding(bed: Bed, name: str, mib: int, container: str) -> Iterator[None]:
    """A process in a container that has so much, more than half of its limit, and keeps it."""
    said = "/tmp/holding"
    program = f"alloc_until_refused --chunk-mib={mib} --hold"
    hold = f"sleep 1000000 2>/dev/null | {program} >{said} 2>&1 & echo $!"
    pid = run_in(bed, name, "sh", "-c", hold, container=container).split()[-1]
    try:
        wait_until(
            f"{mib} MiB are held in {name}",
            lambda: "refused" in run_in(bed, name, "cat", said, container=container),
            POD_TIMEOUT_S,
        )
        yield
    finally:
        run_in(bed, name, "kill", "-9", pid, container=container)


def slices(bed: Bed, node: str) -> list[dict[str, Any]]:
    """The slices of a node."""
    selector = f"--field-selector=spec.nodeName={node}"
    said = bed.kubectl("get", "resourceslices", selector, "-o", "json").stdout
    return list(json.loads(said)["items"])


def wait_for_slice(bed: Bed, node: str) -> None:
    """Until the node offers its card."""
    wait_until(
        f"{node} has one slice with a card",
        lambda: [len(item["spec"].get("devices", [])) for item in slices(bed, node)] == [1],
        SLICE_TIMEOUT_S,
        explain=lambda: bed.node(node).log("agent").read_text()[-2000:],
    )


def busy_shares(bed: Bed, node: str, pods: Sequence[str], seconds: float) -> dict[str, float]:
    """Percent of the node's card that each pod was served, by the card's own account."""
    containers = {pod: _container_ids(bed, pod) for pod in pods}
    before = _card_account(bed, node)
    time.sleep(seconds)
    after = _card_account(bed, node)
    span_ns = after["total"] - before["total"]
    return {
        pod: 100 * sum(after.get(id_, 0) - before.get(id_, 0) for id_ in ids) / span_ns
        for pod, ids in containers.items()
    }


def kill_tenant(bed: Bed, node: str, pod: str) -> None:
    """SIGKILL every process of a pod that the card knows."""
    ids = _container_ids(bed, pod)
    for row in _card_rows(bed, node):
        if row[1] != "total" and _container_of(row[2]) in ids:
            os.kill(int(row[2]), signal.SIGKILL)


def _card_rows(bed: Bed, node: str) -> list[list[str]]:
    """The card's account past any guard: of each process, and of the card (`total`)."""
    driver = "/run/nvidia/driver/usr"
    library = f"LD_LIBRARY_PATH={driver}/lib/{platform.machine()}-linux-gnu"
    command = ["env", library, f"{driver}/bin/nvidia-smi", "--busy"]
    said = bed.node(node).run_in_namespaces(command).stdout
    return [line.split(", ") for line in said.splitlines()[1:]]


def _card_account(bed: Bed, node: str) -> dict[str, int]:
    """Busy time by container, and the card's clock as `total`, in ns."""
    found: dict[str, int] = {}
    for row in _card_rows(bed, node):
        if row[1] == "total":
            found["total"] = int(row[2])
        elif (container := _container_of(row[2])) is not None:
            found[container] = found.get(container, 0) + int(row[4])
    return found


def _container_of(pid: str) -> str | None:
    """Id of the container in whose cgroup a process is; None if it is gone."""
    try:
        cgroups = Path(f"/proc/{pid}/cgroup").read_text()
    except FileNotFoundError:
        return None
    match = re.search(r"/([0-9a-f]{64})$", cgroups, re.MULTILINE)
    return match[1] if match else None


def _container_ids(bed: Bed, pod: str) -> set[str]:
    told = status(bed, pod)["containerStatuses"]
    return {entry["containerID"].removeprefix("containerd://") for entry in told}
