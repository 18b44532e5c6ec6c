"""Deletes what Helm did not make: templates, slices, a Lease, Secrets."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from casaba.errors import CasabaError
from casaba.kube import (
    LEASES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    SECRETS,
    Conflict,
    KubeClient,
    KubeError,
    NotFound,
    Resource,
    load_config,
)
from casaba.policy.collection import MADE_BY, WEBHOOK
from casaba.policy.removal import Bare, is_made_template
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.uninstall import UninstallSettings


class LeftoversStay(CasabaError):
    """Something could not be deleted."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """One object to delete: this one if its UID is known, else whoever has the name."""

    resource: Resource[Any]
    name: str
    namespace: str | None = None
    uid: str | None = None

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {place}{self.name}"


async def delete_leftovers(settings: UninstallSettings, tell: Callable[[str], None]) -> None:
    """Delete each; one that fails does not stop the others. What is gone already is fine.

    Raises LeftoversStay with all that failed, and KubeConfigError.
    """
    async with KubeClient(load_config(settings.kubeconfig)) as client:
        failures = [failure async for failure in _failures(client, settings, tell)]
    if failures:
        raise LeftoversStay(f"not everything was removed: {'; '.join(failures)}")


async def _failures(
    client: KubeClient, settings: UninstallSettings, tell: Callable[[str], None]
) -> AsyncIterator[str]:
    for find in (_templates, _slices):
        try:
            found = await find(client)
        except KubeError as error:
            yield str(error)
            continue
        for leftover in found:
            if failure := await _delete(client, leftover, tell):
                yield failure
    for leftover in _named(settings):
        if failure := await _delete(client, leftover, tell):
            yield failure


async def _templates(client: KubeClient) -> list[Leftover]:
    bare = RESOURCE_CLAIM_TEMPLATES.decoded_as(Bare)
    listed = await client.list(bare, label_selector=f"{MADE_BY}={WEBHOOK}")
    return [
        Leftover(
            resource=bare,
            name=one.metadata.name,
            namespace=one.metadata.namespace,
            uid=one.metadata.uid,
        )
        for one in listed.items
        if is_made_template(one.metadata)
    ]


async def _slices(client: KubeClient) -> list[Leftover]:
    """Of agents that were killed, or whose node is down."""
    bare = RESOURCE_SLICES.decoded_as(Bare)
    listed = await client.list(bare, field_selector=f"spec.driver={DRIVER_NAME}")
    return [
        Leftover(resource=bare, name=one.metadata.name, uid=one.metadata.uid)
        for one in listed.items
    ]


def _named(settings: UninstallSettings) -> list[Leftover]:
    own = settings.namespace
    return [
        *(Leftover(resource=LEASES, name=name, namespace=own) for name in settings.leases),
        *(Leftover(resource=SECRETS, name=name, namespace=own) for name in settings.secrets),
    ]


async def _delete(
    client: KubeClient, leftover: Leftover, tell: Callable[[str], None]
) -> str | None:
    """The reason of a failure."""
    try:
        await client.delete(
            leftover.resource, leftover.name, namespace=leftover.namespace, uid=leftover.uid
        )
    except (NotFound, Conflict):
        return None
    except KubeError as error:
        return str(error)
    tell(f"removed: {leftover}")
    return None
