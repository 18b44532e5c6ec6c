"""The demo's way to the simulated API server: apply a file, wait until an object is as expected."""

import asyncio
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from casaba.errors import CasabaError
from casaba.kube import Deleted, Informer, KubeClient, Resource, Synced
from casaba.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIMS,
)

NAMESPACE = "default"
WAIT_S = 30.0

Object = dict[str, Any]

_KINDS: dict[str, Resource[Any]] = {
    resource.kind: resource.decoded_as(dict)
    for resource in (
        CLUSTER_ROLES,
        CLUSTER_ROLE_BINDINGS,
        DEVICE_CLASSES,
        RESOURCE_CLAIMS,
        PODS,
    )
}


def examples() -> Path:
    """The manifests that travel with the package."""
    return Path(str(files("casaba"))) / "_examples"


async def apply_file(client: KubeClient, name: str) -> list[Object]:
    """Apply the objects of a file below `examples` as they are; returns what they became."""
    documents = yaml.safe_load_all((examples() / name).read_text())
    return [await _apply(client, document) for document in documents]


async def _apply(client: KubeClient, document: Object) -> Object:
    resource = _KINDS[document["kind"]]
    namespace = NAMESPACE if resource.namespaced else None
    name = document["metadata"]["name"]
    applied: Object = await client.apply(resource, name, document, namespace=namespace)
    return applied


async def delete_file(client: KubeClient, name: str) -> None:
    """Ask for the deletion of a file's objects, the last ones first."""
    for document in reversed(list(yaml.safe_load_all((examples() / name).read_text()))):
        resource = _KINDS[document["kind"]]
        await client.delete(resource, document["metadata"]["name"], namespace=NAMESPACE)


async def until(
    client: KubeClient,
    resource: Resource[Any],
    wanted: Callable[[Object], bool],
    what: str,
    *,
    name: str = "",
) -> Object:
    """The first object, of a name if one is given, that is as wanted.

    Raises CasabaError, naming `what` was waited for, after WAIT_S.
    """
    selector = f"metadata.name={name}" if name else ""
    namespace = NAMESPACE if resource.namespaced else None
    shape: Resource[Object] = resource.decoded_as(dict)
    try:
        async with asyncio.timeout(WAIT_S):
            async with Informer(
                client, shape, namespace=namespace, field_selector=selector
            ) as news:
                async for event in news:
                    if not isinstance(event, Synced | Deleted) and wanted(event.object):
                        return event.object
    except TimeoutError:
        pass
    raise CasabaError(f"the demo waited {WAIT_S:.0f} s in vain until {what}")


async def until_gone(client: KubeClient, resource: Resource[Any]) -> None:
    """Wait until a namespaced resource has no objects; raises CasabaError after WAIT_S."""
    shape: Resource[Object] = resource.decoded_as(dict)
    try:
        async with asyncio.timeout(WAIT_S):
            async with Informer(client, shape, namespace=NAMESPACE) as news:
                async for event in news:
                    if isinstance(event, Synced | Deleted) and not news.objects:
                        return
    except TimeoutError:
        pass
    raise CasabaError(
        f"the demo waited {WAIT_S:.0f} s in vain until all {resource.plural} were gone"
    )
