"""A cluster with casaba in it, as far as the API shows it, and `casaba doctor` to look at it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from casaba.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NODES,
    KubeConfig,
)
from casaba.policy.diagnosis import Finding, State
from casaba.services.doctor.main import examine_cluster
from casaba.settings.doctor import DoctorSettings, Names
from tests.component.webhook.certificates import Authority
from tests.component.webhook.site import NAMESPACE, Site
from tests.unit.managed import entry

Object = dict[str, Any]

NODE = "edge-1"
_LONG_S = 90 * 86_400.0
WELL = 'casaba_kubelet_registered{node="edge-1"} 1\n'
SETTINGS = DoctorSettings(
    names=Names(mutating="casaba", validating="casaba"), trial_namespace=NAMESPACE, look_s=30.0
)
_PROGRAM = "import sys; from casaba.cli.doctor import main; sys.exit(main(sys.argv[1:]))"


def node(name: str = NODE, **status: Any) -> Object:
    """A labelled one."""
    info = {"kubeletVersion": "v1.36.1", "containerRuntimeVersion": "containerd://2.1.4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"gpu": "on"}},
        "status": {"nodeInfo": info, **status},
    }


def pod(component: str, name: str) -> Object:
    """One of casaba's, ready."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": "casaba",
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/instance": "casaba",
            },
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "casaba:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def lease() -> Object:
    """The controller's, which stays fresh for as long as any test may take."""
    renewed = (datetime.now(UTC) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "casaba-controller", "namespace": NAMESPACE},
        "spec": {"holderIdentity": "controller-1", "renewTime": renewed},
    }


def furnish(site: Site) -> None:
    """Put there what an installation shows; its authority has long to live."""
    site.authority = Authority(ends_in_s=_LONG_S)
    site.volume.put(site.authority.pair(), site.authority.pem)
    pods = [("node-agent", "agent-1"), ("webhook", "webhook-1"), ("controller", "controller-1")]
    (device_class,) = site.server.objects("deviceclasses")
    ours = {
        "name": device_class["metadata"]["name"],
        "labels": {"app.kubernetes.io/name": "casaba"},
    }
    site.server.seed(
        [
            *(node(), lease(), {**device_class, "metadata": ours}),
            *(pod(component, name) for component, name in pods),
        ]
    )


@dataclass(frozen=True)
class Found:
    """Findings by their check."""

    by_id: Mapping[str, Finding]

    @classmethod
    async def of(cls, config: KubeConfig, **changes: Any) -> Found:
        """Examine a cluster."""
        findings = await examine_cluster(config, replace(SETTINGS, **changes))
        return cls({one.id: one for one in findings})

    def are(self, *states: State) -> list[str]:
        """The checks that have one of these states."""
        return [one.id for one in self.by_id.values() if one.state in states]


async def register_hami(site: Site, silent_s: float) -> None:
    """Put HAMi's annotations on the node, as one that wrote last so long ago."""
    resource = NODES.decoded_as(dict)
    written_at = datetime.now(UTC) + timedelta(hours=8, seconds=-silent_s)
    notes = {
        "hami.io/node-nvidia-register": "[{}]",
        "hami.io/node-handshake": f"Reported_{written_at:%Y.%m.%d %H:%M:%S}",
    }
    await site.client.patch(resource, NODE, {"metadata": {"annotations": notes}})
    sign = ("metadata", "annotations", "hami.io/node-handshake")
    owner = entry(datetime.now(UTC) - timedelta(seconds=silent_s), *sign, manager="hami")
    touched = {"annotations": {"touched": str(silent_s)}, "managedFields": [owner]}
    await site.client.patch(resource, NODE, {"metadata": touched})


async def grant(site: Site, user: str, rules: list[Object]) -> KubeConfig:
    """Access of a user who may do just this."""
    await site.client.create(CLUSTER_ROLES, {"metadata": {"name": user}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    }
    await site.client.create(CLUSTER_ROLE_BINDINGS, binding)
    return access(site, user)


def access(site: Site, user: str) -> KubeConfig:
    """Access of a user with whatever rights."""
    from casaba.simulation.api_server.identities import client_config

    return client_config(site.server.authority, site.server.url, user, ())


@dataclass(frozen=True)
class Run:
    """A run of the command."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Object:
        """With --json."""
        report: Object = json.loads(self.out)
        return report

    def states(self) -> dict[str, str]:
        """By check, with --json."""
        return {one["id"]: one["state"] for one in self.report["findings"]}


async def doctor(*flags: str, **environment: str) -> Run:
    """Run `casaba doctor` as a process, with nothing of our own environment's Kubernetes."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, *flags),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**kept, "COLUMNS": "200", **environment},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Run(process.returncode, out.decode(), err.decode())


def kubeconfig(folder: Path, site: Site, *user: Any) -> str:
    """The flag with a file in which is how to reach the server, as its administrator or another."""
    path = folder / "doctor.kubeconfig"
    path.write_text(yaml.safe_dump(site.server.kubeconfig(*user)))
    return f"--kubeconfig={path}"
