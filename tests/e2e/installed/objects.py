"""What the tests of this folder put on the API server, and find there."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from casaba.policy.collection import LAST_USED, MADE_BY, WEBHOOK
from tests.chart.rendering import NAMESPACE
from tests.cluster.bed import Bed
from tests.e2e.workloads import claim, slices

SERVING, AUTHORITY = "hami-dra-webhook-tls", "hami-dra-webhook-ca"
# Named as the webhook names what it makes, by the contents.
OLD_TEMPLATE = "casaba-0123456789abcdef"

Object = dict[str, Any]


def ruined_secrets() -> Iterator[Object]:
    """The webhook's Secrets, with nothing in them that could be served, and not to be changed."""
    for name, kind, keys in (
        (SERVING, "kubernetes.io/tls", ("tls.crt", "tls.key")),
        (AUTHORITY, "Opaque", ("ca.crt", "ca.key")),
    ):
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": dict.fromkeys(keys, base64.b64encode(b"ruined").decode()),
            "immutable": True,
        }


def old_template() -> Object:
    """A template of the webhook's, last used long ago."""
    template = template_of(OLD_TEMPLATE, labels={MADE_BY: WEBHOOK})
    template["metadata"]["annotations"] = dict([old_stamp().split("=")])
    return template


def old_stamp() -> str:
    """The annotation of a template that was last used long ago."""
    return f"{LAST_USED}=2025-01-01T00:00:00Z"


def template_of(name: str, labels: dict[str, str]) -> Object:
    """A template of one small slice."""
    made = claim(name, ("gpu", "1Gi", 1))
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return made | {
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": made["spec"]},
    }


def read(bed: Bed, kind: str, name: str, namespace: str = "default") -> Object:
    """An object; empty if there is none."""
    wanted = ("get", kind, name, f"--namespace={namespace}", "--ignore-not-found", "-o=json")
    said = bed.kubectl(*wanted).stdout
    return dict(json.loads(said)) if said else {}


def slice_of(bed: Bed, node: str) -> Object:
    """The one slice of a node; empty while there are none or several."""
    found = slices(bed, node)
    return found[0] if len(found) == 1 else {"spec": {}}
