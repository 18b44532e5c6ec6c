"""The socket on which a kubelet tells monitoring agents which pod has which devices.

Service, messages and version are Kubernetes' (k8s.io/kubelet: podresources/v1), without CPUs,
memory and device plugins.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from casaba.errors import HostError
from casaba.net.grpc_services import ClosingServer, UnaryService
from casaba.wire._proto import podresources_v1_pb2 as messages


@dataclass(frozen=True, kw_only=True)
class DeviceInUse:
    """A device that a driver prepared for a claim."""

    driver: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None


@dataclass(frozen=True, kw_only=True)
class ClaimInUse:
    """A container's use of a claim."""

    namespace: str
    name: str
    devices: tuple[DeviceInUse, ...]


@dataclass(frozen=True, kw_only=True)
class PodInUse:
    """A pod, and the claims of each of its containers by name."""

    namespace: str
    name: str
    containers: tuple[tuple[str, tuple[ClaimInUse, ...]], ...]


@asynccontextmanager
async def pod_resources_server(
    socket: Path, pods: Callable[[], Iterable[PodInUse]]
) -> AsyncIterator[None]:
    """Serve List and Get until the block ends; raises HostError when there can be no socket."""
    server = ClosingServer([_service(pods)])
    try:
        socket.parent.mkdir(parents=True, exist_ok=True)
        socket.unlink(missing_ok=True)
        await server.start(path=str(socket))
    except OSError as error:
        raise HostError(f"can't listen on {socket}: {error.strerror or error}") from error
    try:
        yield
    finally:
        await server.end()
        socket.unlink(missing_ok=True)


def _service(pods: Callable[[], Iterable[PodInUse]]) -> UnaryService:
    async def list_(_: Any) -> Any:
        return messages.ListPodResourcesResponse(pod_resources=map(_pod, pods()))

    async def get(request: Any) -> Any:
        for pod in pods():
            if (pod.namespace, pod.name) == (request.pod_namespace, request.pod_name):
                return messages.GetPodResourcesResponse(pod_resources=_pod(pod))
        wanted = f"{request.pod_name} in namespace {request.pod_namespace}"
        raise GRPCError(Status.UNKNOWN, f"pod {wanted} not found")

    service = messages.DESCRIPTOR.services_by_name["PodResourcesLister"]
    return UnaryService(service, {"List": list_, "Get": get})


def _pod(pod: PodInUse) -> Any:
    message = messages.PodResources(name=pod.name, namespace=pod.namespace)
    for name, claims in pod.containers:
        container = message.containers.add(name=name)
        container.dynamic_resources.extend(map(_claim, claims))
    return message


def _claim(claim: ClaimInUse) -> Any:
    message = messages.DynamicResource(claim_name=claim.name, claim_namespace=claim.namespace)
    for device in claim.devices:
        resource = message.claim_resources.add(
            driver_name=device.driver, pool_name=device.pool, device_name=device.device
        )
        resource.cdi_devices.extend(messages.CDIDevice(name=id_) for id_ in device.cdi_ids)
        if device.share_id is not None:
            resource.share_id = device.share_id
    return message
