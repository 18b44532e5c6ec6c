"""The socket on which a kubelet tells monitoring agents which pod has which devices.

Service, messages and version are Kubernetes' (k8s.io/kubelet: podresources/v1), without CPUs,
memory and device plugins.
"""

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from casaba.errors import HostError
from casaba.model.pod_use import ClaimInUse, DeviceInUse, PodInUse
from casaba.net.grpc_services import ClosingServer, UnaryService
from casaba.wire._proto import podresources_v1_pb2 as messages

__all__ = ["ClaimInUse", "DeviceInUse", "PodInUse", "list_pods", "pod_resources_server"]


_LIST = "/v1.PodResourcesLister/List"


async def list_pods(socket: Path, timeout_s: float) -> tuple[PodInUse, ...]:
    """The kubelet's pods with their claims; raises HostError when it does not answer."""
    channel = Channel(path=str(socket))
    method = UnaryUnaryMethod[Any, Any](channel, _LIST, messages.ListPodResourcesRequest, _Bytes)
    try:
        answer: bytes = await method(messages.ListPodResourcesRequest(), timeout=timeout_s)
    except (GRPCError, OSError, ProtocolError, StreamTerminatedError) as error:
        reason = str(error) or type(error).__name__
        raise HostError(f"the kubelet does not tell its pods at {socket}: {reason}") from error
    finally:
        channel.close()
    try:
        return _pods_in_use(answer)
    except DecodeError as error:
        raise HostError(f"the kubelet's answer at {socket} lists no pods: {error}") from error


class _Bytes:
    """The type of a message that is left as it is."""

    @staticmethod
    def FromString(content: bytes) -> bytes:  # noqa: N802 - protobuf's name
        return content


@functools.lru_cache(2)
def _pods_in_use(answer: bytes) -> tuple[PodInUse, ...]:
    """Pods seldom change between two scrapes."""
    response = messages.ListPodResourcesResponse.FromString(answer)
    return tuple(map(_pod_in_use, response.pod_resources))


def _pod_in_use(pod: Any) -> PodInUse:
    return PodInUse(
        namespace=pod.namespace,
        name=pod.name,
        containers=tuple(
            (container.name, tuple(map(_claim_in_use, container.dynamic_resources)))
            for container in pod.containers
            if container.dynamic_resources
        ),
    )


def _claim_in_use(claim: Any) -> ClaimInUse:
    return ClaimInUse(
        namespace=claim.claim_namespace,
        name=claim.claim_name,
        devices=tuple(map(_device_in_use, claim.claim_resources)),
    )


def _device_in_use(device: Any) -> DeviceInUse:
    return DeviceInUse(
        driver=device.driver_name,
        pool=device.pool_name,
        device=device.device_name,
        cdi_ids=tuple(one.name for one in device.cdi_devices),
        share_id=device.share_id if device.HasField("share_id") else None,
    )


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
