"""Observations of a cluster, all at once, each for itself."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import msgspec

from casaba.errors import InvalidInput
from casaba.kube import (
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    VALIDATING_WEBHOOKS,
    KubeClient,
    NotFound,
    Resource,
    Undecodable,
)
from casaba.policy.diagnosis import Unseen
from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Webhooks
from casaba.services.doctor.looking import seen
from casaba.services.doctor.parts import ask_agents, ask_webhooks
from casaba.services.doctor.trials import try_classic_pod, try_slice
from casaba.settings.doctor import DoctorSettings
from casaba.settings.host_paths import DRIVER_NAME

Object = dict[str, Any]
Objects = tuple[Object, ...]
Look = Callable[[KubeClient, DoctorSettings], Coroutine[Any, Any, Any]]

RESOURCE_API = "/apis/resource.k8s.io/v1"
CERT_MANAGER = "/apis/cert-manager.io/v1"
OUR_PODS = "app.kubernetes.io/name=casaba"
AGENT_COMPONENT = "casaba-node-agent"
DEFAULT_NAMESPACE = "hami-system"

_MANY_TIMES = 5
"""Many pods, asked some at a time, may take so many times as long as one observation."""

_COMPONENT = "app.kubernetes.io/component"
_LISTED_AS_DICT = {
    resource.plural: resource.decoded_as(dict)
    for resource in (
        *(NODES, PODS, EVENTS, LEASES, DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS),
        *(MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS),
    )
}


async def read_version(client: KubeClient) -> Object:
    """The answer of /version; raises KubeError."""
    content = await client.read_path("/version")
    try:
        version = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Undecodable(f"get /version: the answer is not understood: {error}") from error
    return version


async def _is_served(client: KubeClient, path: str) -> bool:
    try:
        await client.read_path(path)
    except NotFound:
        return False
    return True


async def _list(client: KubeClient, resource: Resource[Any], **selection: Any) -> Objects:
    listed = await client.list(_LISTED_AS_DICT[resource.plural], **selection)
    return listed.items


async def _nodes(client: KubeClient, settings: DoctorSettings) -> Objects:
    if settings.node is None:
        return await _list(client, NODES)
    nodes = await _list(client, NODES, field_selector=f"metadata.name={settings.node}")
    if not nodes:
        raise InvalidInput(f"there is no node {settings.node}; kubectl get nodes lists them")
    return nodes


async def _slices(client: KubeClient, settings: DoctorSettings) -> Objects:
    selector = f"spec.driver={DRIVER_NAME}"
    if settings.node is not None:
        selector += f",spec.nodeName={settings.node}"
    return await _list(client, RESOURCE_SLICES, field_selector=selector)


async def _webhooks(client: KubeClient) -> Webhooks:
    return Webhooks(
        mutating=await _list(client, MUTATING_WEBHOOKS),
        validating=await _list(client, VALIDATING_WEBHOOKS),
    )


async def _events(client: KubeClient, settings: DoctorSettings) -> Objects:
    selector = "involvedObject.kind=Node"
    if settings.node is not None:
        selector += f",involvedObject.name={settings.node}"
    events = await _list(client, EVENTS, field_selector=selector)
    return tuple(one for one in events if _component(one) == AGENT_COMPONENT)


def _component(event: Object) -> str:
    source = event.get("source")
    told = source.get("component") if isinstance(source, dict) else None
    return str(told or event.get("reportingComponent") or "")


async def _schedulers(client: KubeClient) -> Objects:
    return await _list(
        client, PODS, namespace="kube-system", label_selector="component=kube-scheduler"
    )


_PREREQUISITES: dict[str, Look] = {
    "resource_api": lambda client, _: _is_served(client, RESOURCE_API),
    "canary": lambda client, _: try_slice(client),
    "nodes": _nodes,
    "slices": _slices,
    "classes": lambda client, _: _list(client, DEVICE_CLASSES),
}

_EVERYTHING: dict[str, Look] = {
    **_PREREQUISITES,
    "schedulers": lambda client, _: _schedulers(client),
    "pods": lambda client, _: _list(client, PODS, label_selector=OUR_PODS),
    "claims": lambda client, _: _list(client, RESOURCE_CLAIMS),
    "webhooks": lambda client, _: _webhooks(client),
    "trial": try_classic_pod,
    "node_leases": lambda client, _: _list(client, LEASES, namespace="kube-node-lease"),
    "events": _events,
    "cert_manager": lambda client, _: _is_served(client, CERT_MANAGER),
}

_HOLDERS: dict[str, Look] = {"claims": lambda client, _: _list(client, RESOURCE_CLAIMS)}


async def observe_prerequisites(
    client: KubeClient, settings: DoctorSettings, version: Object | Unseen
) -> ClusterObservations:
    """What matters before an installation."""
    return await _observed(client, settings, _PREREQUISITES, version)


async def observe_holders(client: KubeClient, settings: DoctorSettings) -> ClusterObservations:
    """What matters before an uninstall."""
    return await _observed(client, settings, _HOLDERS, Unseen("it was not asked"))


async def observe_cluster(
    client: KubeClient, settings: DoctorSettings, version: Object | Unseen
) -> ClusterObservations:
    """Everything; the Lease and the agents are looked for where casaba's pods are."""
    observations = await _observed(client, settings, _EVERYTHING, version)
    pods, many_s = observations.pods, _MANY_TIMES * settings.look_s
    async with asyncio.TaskGroup() as group:
        lease = group.create_task(seen(_lease(client, settings, pods), settings.look_s))
        agents = group.create_task(seen(ask_agents(client, settings, pods), many_s))
        served = group.create_task(seen(ask_webhooks(client, settings, pods), many_s))
    return replace(
        observations, lease=lease.result(), agents=agents.result(), served=served.result()
    )


async def _observed(
    client: KubeClient,
    settings: DoctorSettings,
    looks: dict[str, Look],
    version: Object | Unseen,
) -> ClusterObservations:
    async with asyncio.TaskGroup() as group:
        tasks = {
            what: group.create_task(seen(look(client, settings), settings.look_s))
            for what, look in looks.items()
        }
    return ClusterObservations(
        names=settings.names,
        now_s=time.time(),
        version=version,
        metrics_restricted=settings.metrics_restricted,
        **{what: task.result() for what, task in tasks.items()},
    )


def _namespace(settings: DoctorSettings, pods: tuple[Any, ...] | Unseen) -> str:
    if settings.names.namespace:
        return settings.names.namespace
    for pod in () if isinstance(pods, Unseen) else pods:
        if (pod["metadata"].get("labels") or {}).get(_COMPONENT) == "controller":
            return str(pod["metadata"]["namespace"])
    return DEFAULT_NAMESPACE


async def _lease(
    client: KubeClient, settings: DoctorSettings, pods: tuple[Any, ...] | Unseen
) -> Object | None:
    namespace = _namespace(settings, pods)
    try:
        return await client.get(LEASES.decoded_as(dict), settings.names.lease, namespace=namespace)
    except NotFound:
        return None
