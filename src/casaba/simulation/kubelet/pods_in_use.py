"""Which container has which devices, for monitoring agents (PodResources API)."""

from collections.abc import Iterable, Iterator

from casaba.net.dra_client import AnsweredDevice
from casaba.net.pod_resources import ClaimInUse, DeviceInUse, PodInUse
from casaba.simulation.kubelet.claims import ClaimUse, PodClaims
from casaba.simulation.kubelet.pod_worker import PodWorker


def pods_in_use(workers: Iterable[PodWorker], claims: PodClaims) -> Iterator[PodInUse]:
    """The pods of the node; claims that are prepared now."""
    for worker in workers:
        metadata = worker.pod["metadata"]
        containers = tuple(
            (loop.container["name"], tuple(map(_claim, claims.uses(worker.pod, loop.container))))
            for loop in worker.containers
        )
        yield PodInUse(
            namespace=metadata["namespace"], name=metadata["name"], containers=containers
        )


def _claim(use: ClaimUse) -> ClaimInUse:
    """All devices of the claim, also those of other requests, as Kubernetes 1.36 tells them."""
    devices = tuple(
        device
        for driver, answered in use.claim.drivers.items()
        for device in _devices(driver, answered)
    )
    return ClaimInUse(namespace=use.claim.namespace, name=use.claim.name, devices=devices)


def _devices(driver: str, answered: Iterable[AnsweredDevice]) -> Iterator[DeviceInUse]:
    """Each has the CDI ids of those before it too, as in Kubernetes 1.36."""
    cdi_ids: tuple[str, ...] = ()
    for device in answered:
        cdi_ids += device.cdi_ids
        yield DeviceInUse(
            driver=driver,
            pool=device.pool,
            device=device.device,
            cdi_ids=cdi_ids,
            share_id=device.share_id,
        )
