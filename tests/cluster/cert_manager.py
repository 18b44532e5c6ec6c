"""Stands in for cert-manager: its kinds as far as a chart needs them, and its part by hand.

The kinds take any content: whether the chart's objects are right is seen by what comes of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import certificates
from tests.cluster.bed import Bed
from tests.cluster.certificates import KeyPair
from tests.cluster.waiting import wait_until

_GROUP = "cert-manager.io"
_KINDS = {
    "Certificate": ("certificates", "Namespaced"),
    "Issuer": ("issuers", "Namespaced"),
    "ClusterIssuer": ("clusterissuers", "Cluster"),
}
_WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_INJECTED = f"{_GROUP}/inject-ca-from"
_TIMEOUT_S = 30.0
_INSTALL_TIMEOUT_S = 180.0


@contextmanager
def kinds(bed: Bed) -> Iterator[None]:
    """cert-manager's kinds are there for a while."""
    definitions = [_definition(kind, *names) for kind, names in _KINDS.items()]
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions})
    bed.kubectl("apply", "-f", "-", stdin=stdin)
    try:
        wait_until("cert-manager's kinds are served", lambda: _served(bed), _TIMEOUT_S)
        yield
    finally:
        bed.kubectl("delete", "-f", "-", stdin=stdin)


def issue(bed: Bed, namespace: str, name: str) -> None:
    """Once a Certificate is there: issue it, and let the webhooks that name it trust it.

    Whatever of it is there last: an installation makes them in any order.
    """
    own = f"/apis/{_GROUP}/v1/namespaces/{namespace}"
    spec = _once_there(bed, f"{own}/certificates/{name}")["spec"]
    assert spec["issuerRef"]["kind"] == "Issuer"
    issuer = _once_there(bed, f"{own}/issuers/{spec['issuerRef']['name']}")
    assert issuer["spec"] == {"selfSigned": {}}
    pair = certificates.self_signed(bed.settings.state / "cert-manager", name, spec["dnsNames"])
    _store(bed, namespace, spec["secretName"], name, pair)
    for plural in _WEBHOOKS:
        _inject(bed, plural, f"{namespace}/{name}", pair)


def _once_there(bed: Bed, path: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found.extend(filter(None, [bed.api.object(path)]))
        return bool(found)

    wait_until(f"{path} is there", is_there, _INSTALL_TIMEOUT_S)
    return found[0]


def _served(bed: Bed) -> bool:
    listed = bed.api.object(f"/apis/{_GROUP}/v1") or {"resources": []}
    return {one["name"] for one in listed["resources"]} >= {plural for plural, _ in _KINDS.values()}


def _definition(kind: str, plural: str, scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def _store(bed: Bed, namespace: str, secret: str, certificate: str, pair: KeyPair) -> None:
    """As cert-manager's issuer of self-signed certificates does: each is its own authority."""
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret,
            "namespace": namespace,
            "annotations": {f"{_GROUP}/certificate-name": certificate},
        },
        "type": "kubernetes.io/tls",
        "data": {
            "ca.crt": _encoded(pair.crt),
            "tls.crt": _encoded(pair.crt),
            "tls.key": _encoded(pair.private),
        },
    }
    bed.kubectl("create", "-f", "-", stdin=json.dumps(body))


def _inject(bed: Bed, plural: str, certificate: str, pair: KeyPair) -> None:
    """As its cainjector does."""
    wait_until(
        f"one of {plural} names {certificate}",
        lambda: bool(_naming(bed, plural, certificate)),
        _INSTALL_TIMEOUT_S,
    )
    for item in _naming(bed, plural, certificate):
        patch = [
            {
                "op": "add",
                "path": f"/webhooks/{index}/clientConfig/caBundle",
                "value": _encoded(pair.crt),
            }
            for index in range(len(item["webhooks"]))
        ]
        name = item["metadata"]["name"]
        bed.kubectl("patch", plural, name, "--type=json", f"--patch={json.dumps(patch)}")


def _naming(bed: Bed, plural: str, certificate: str) -> list[dict[str, Any]]:
    listed = bed.api.object(f"/apis/admissionregistration.k8s.io/v1/{plural}") or {"items": []}
    return [
        item
        for item in listed["items"]
        if item["metadata"].get("annotations", {}).get(_INJECTED) == certificate
    ]


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
