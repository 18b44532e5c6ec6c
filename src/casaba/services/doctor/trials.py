"""Dry runs: what would become of a slice and of a classic pod. Nothing is stored."""

import time
from datetime import datetime
from functools import partial
from typing import Any

from casaba.kube import (
    NAMESPACES,
    PODS,
    RESOURCE_SLICES,
    Invalid,
    KubeClient,
    KubeError,
    NotFound,
    Refused,
)
from casaba.policy.diagnosis.cluster.canary import canary_slice, classic_pod
from casaba.policy.diagnosis.cluster.observations import Canary, Trial
from casaba.policy.publish import dropped_fields
from casaba.settings.doctor import DoctorSettings


async def try_slice(client: KubeClient) -> Canary:
    """Whether consumable capacities are kept, and what the server's clock shows meanwhile.

    Raises KubeError where it could not be tried.
    """
    wanted, before_s = canary_slice(), time.time()
    try:
        stored = await client.create(RESOURCE_SLICES.decoded_as(dict), wanted, dry_run=True)
    except (Invalid, NotFound) as error:
        return Canary(refusal=str(error))
    return Canary(
        dropped=dropped_fields(wanted["spec"], stored.get("spec") or {}),
        local_before_s=before_s,
        local_after_s=time.time(),
        server_s=_created_s(stored),
    )


def _created_s(stored: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(stored["metadata"]["creationTimestamp"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


async def try_classic_pod(client: KubeClient, settings: DoctorSettings) -> Trial:
    """What the API server and its webhooks make of one; raises KubeError where nobody answers."""
    pod, namespace = classic_pod(settings.names.resource), settings.trial_namespace
    labels = await _labels_of(client, namespace)
    tried = partial(Trial, namespace=namespace, namespace_labels=labels)
    try:
        stored = await client.create(PODS.decoded_as(dict), pod, namespace=namespace, dry_run=True)
    except Refused as error:
        return tried(refusal=error.status.message or str(error))
    return tried(pod=stored)


async def _labels_of(client: KubeClient, namespace: str) -> dict[str, str]:
    """Empty where it can't be read: its name tells the most."""
    try:
        found = await client.get(NAMESPACES.decoded_as(dict), namespace)
    except KubeError:
        return {}
    return found["metadata"].get("labels") or {}
