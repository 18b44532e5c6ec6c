"""Stands in for cert-manager: its kinds as far as a chart needs them, and its part by hand.

The kinds take any content: whether the chart's objects are right is seen by what comes of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.cluster.bed import Bed
from tests.cluster.issuing import GROUP, Issuing, Object
from tests.cluster.waiting import wait_until

_KINDS = {
    "Certificate": ("certificates", "Namespaced"),
    "Issuer": ("issuers", "Namespaced"),
    "ClusterIssuer": ("clusterissuers", "Cluster"),
}
_WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_INJECTED = f"{GROUP}/inject-ca-from"
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
    """Issue a Certificate, and let the webhooks that name it trust who signed it.

    What is not there yet is waited for: an installation makes its objects in any order.
    """
    issuing = Issuing(
        bed.settings.state / "cert-manager",
        lambda kind, holds: _once_there(bed, namespace, kind, holds),
    )
    issuing.issue(name)
    for secret in issuing.secrets.values():
        stdin = json.dumps(secret)
        bed.kubectl("create", f"--namespace={namespace}", "-f", "-", stdin=stdin)
        if secret["metadata"]["annotations"][f"{GROUP}/certificate-name"] == name:
            _inject_everywhere(bed, f"{namespace}/{name}", secret["data"]["ca.crt"])


def _once_there(bed: Bed, namespace: str, kind: str, holds: Callable[[Object], bool]) -> Object:
    plural, _ = _KINDS[kind]
    found: list[Object] = []

    def is_there() -> bool:
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/{plural}"
        listed = bed.api.object(path) or {"items": []}
        found.extend(filter(holds, listed["items"]))
        return bool(found)

    wait_until(f"the {kind} that is asked for is there", is_there, _INSTALL_TIMEOUT_S)
    return found[0]


def _served(bed: Bed) -> bool:
    listed = bed.api.object(f"/apis/{GROUP}/v1") or {"resources": []}
    return {one["name"] for one in listed["resources"]} >= {plural for plural, _ in _KINDS.values()}


def _definition(kind: str, plural: str, scope: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def _inject_everywhere(bed: Bed, certificate: str, bundle: str) -> None:
    for plural in _WEBHOOKS:
        _inject(bed, plural, certificate, bundle)


def _inject(bed: Bed, plural: str, certificate: str, bundle: str) -> None:
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
                "value": bundle,
            }
            for index in range(len(item["webhooks"]))
        ]
        name = item["metadata"]["name"]
        bed.kubectl("patch", plural, name, "--type=json", f"--patch={json.dumps(patch)}")


def _naming(bed: Bed, plural: str, certificate: str) -> list[Object]:
    listed = bed.api.object(f"/apis/admissionregistration.k8s.io/v1/{plural}") or {"items": []}
    return [
        item
        for item in listed["items"]
        if item["metadata"].get("annotations", {}).get(_INJECTED) == certificate
    ]
