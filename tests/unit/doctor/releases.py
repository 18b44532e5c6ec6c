"""Clusters that are not as the chart's defaults have them, and legal all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from casaba.policy.diagnosis import Unanswered
from casaba.policy.diagnosis.cluster.observations import Trial
from casaba.settings.doctor import Names
from tests.unit.doctor import healthy
from tests.unit.doctor.healthy import NOW, device_class, node
from tests.unit.managed import entry

HAMI = {"hami.io/node-nvidia-register": "GPU-1,10,23028,100:", "hami.io/node-handshake": ""}
HAMI_SIGN = ("metadata", "annotations", "hami.io/node-handshake")
SITE = {"names": Names(node_labels=(("gpu", "on"), ("site", "x")))}
ELSEWHERE = node("edge-2")
"""Of another site: it has only the first of both labels."""
AT_SITE = node(metadata={"labels": {"gpu": "on", "site": "x"}})
RENAMED = {"names": Names(resource="example.com/card", amounts=("example.com/mib",))}
SILENT = {"edge-1": Unanswered("no answer within 10 s")}


def hami(silent_s: float) -> dict[str, Any]:
    """A node on which HAMi wrote last so long ago, and nobody since."""
    signs = [entry(NOW - timedelta(seconds=silent_s), *HAMI_SIGN)]
    return {"nodes": (node(metadata={"annotations": HAMI, "managedFields": signs}),)}


def stands_for(resource: str) -> dict[str, Any]:
    return {"classes": (device_class(), device_class("whole", extendedResourceName=resource))}


def tried(namespace: str = "default", **labels: str) -> dict[str, Any]:
    """A trial pod that nobody converted."""
    written = {f"hami.io/{name}": value for name, value in labels.items()}
    trial = Trial(pod=healthy.UNCONVERTED, namespace=namespace, namespace_labels=written)
    return {"trial": trial}
