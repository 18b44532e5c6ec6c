"""Identities that only the chart's admission policies hold back, and how to act as each of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import DRIVER, claim

NAMESPACE = "policy-test"
AGENT = "hami-dra-driver-service-account"
OTHER = "somebody"
OWN, FOREIGN = "edge-1", "edge-2"
POLICY_TIMEOUT_S = 60.0
OTHER_DRIVER = "other.example.com"
Object = dict[str, Any]


class Cluster(NamedTuple):
    """The bed with the policies, and how to call it under each identity."""

    bed: Bed
    kubeconfigs: dict[str, Path]

    def kubectl(
        self, identity: str, *arguments: str, stdin: Object | None = None
    ) -> subprocess.CompletedProcess[str]:
        """kubectl by dry-run as one of the identities; fails or not."""
        options = [f"--kubeconfig={self.kubeconfigs[identity]}", "--dry-run=server"]
        text = None if stdin is None else json.dumps(stdin)
        return self.bed.kubectl(*arguments, *options, stdin=text, check=False)


def identities() -> list[Object]:
    """Accounts with more rights than the chart gives, so that only the policies refuse."""
    meta = {"namespace": NAMESPACE}
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    subjects = [
        {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE} for name in (AGENT, OTHER)
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    named = {"name": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": named},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, **meta}}
            for name in (AGENT, OTHER)
        ),
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": named, "rules": rules},
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": role,
            "subjects": subjects,
        },
        *(_pod(name) for name in (AGENT, OTHER)),
    ]


def _pod(account: str) -> Object:
    """A pod of the node, to which a token can be bound; it need not run."""
    image = {"name": "c", "image": "localhost/never:1", "imagePullPolicy": "Never"}
    spec = {
        "nodeName": OWN,
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 0,
        "containers": [image],
    }
    metadata = {"name": f"{account}-pod", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def bound_to(pod: str) -> tuple[str, ...]:
    return ("--bound-object-kind=Pod", f"--bound-object-name={pod}")


def write_kubeconfig(bed: Bed, file: Path, token: str) -> None:
    """The administrator's kubeconfig with a token in the place of the certificate."""
    content = json.loads(bed.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token.strip()}
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))


def wait_until_in_force(cluster: Cluster) -> None:
    """The API server reads new policies a moment after they are stored."""
    wrong = claim("policy-probe", ("gpu", "1Gi", 101))
    wait_until(
        "the policies are in force",
        lambda: all(
            cluster.kubectl(who, "create", "-f", "-", stdin=object_).returncode != 0
            for who, object_ in (("admin", wrong), ("unbound", new_slice()))
        ),
        POLICY_TIMEOUT_S,
    )


def new_slice(name: str = OWN, pool: str | None = None, **spec: Any) -> Object:
    """A slice of a node, with changes; None takes a field away."""
    body = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": pool or name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "hami-gpu-0"}],
    } | spec
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "policy-test-"},
        "spec": {key: value for key, value in body.items() if value is not None},
    }
