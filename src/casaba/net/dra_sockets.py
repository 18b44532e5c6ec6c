"""The kubelet's two doors to a DRA driver: the plugin socket and the registration socket.

Services, messages and versions are Kubernetes' (k8s.io/kubelet: dra/v1, dra/v1beta1,
pluginregistration/v1). The kubelet is the client on both.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from google.protobuf.empty_pb2 import Empty
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from casaba.errors import InvalidInput
from casaba.model.ids import ClaimUid
from casaba.model.prepared import PreparedDevice
from casaba.net.grpc_services import ClosingServer, UnaryService
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire._proto import dra_v1_pb2, dra_v1beta1_pb2, pluginregistration_pb2

SOCKET_PATH_MAX_BYTES = 107
"""sun_path of a unix address, less its end (unix(7))."""

SUPPORTED_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""The kubelet takes the first that it knows."""

_PLUGIN_TYPE = "DRAPlugin"


@dataclass(frozen=True, kw_only=True)
class ClaimReference:
    """A claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str


class ClaimError(str):
    """Why one claim could not be served; the kubelet shows it in an event of the pod."""


class DraDriver(Protocol):
    """What the kubelet asks for, one call for many claims; answers are by claim UID."""

    async def prepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[ClaimUid, tuple[PreparedDevice, ...] | ClaimError]:
        """Make devices ready; never raises for a single claim."""

    async def unprepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[ClaimUid, ClaimError | None]:
        """Take them away again; never raises for a single claim."""


def dra_endpoint(driver: DraDriver, messages: Any) -> UnaryService:
    """The DRAPlugin service of one version, `messages` being its generated module."""

    async def prepare(request: Any) -> Any:
        answers = await driver.prepare(_references(request))
        response = messages.NodePrepareResourcesResponse()
        for uid, answer in answers.items():
            entry = response.claims[uid]
            if isinstance(answer, ClaimError):
                entry.error = answer
            else:
                entry.devices.extend(_device(messages, device) for device in answer)
        return response

    async def unprepare(request: Any) -> Any:
        answers = await driver.unprepare(_references(request))
        response = messages.NodeUnprepareResourcesResponse()
        for uid, error in answers.items():
            response.claims[uid].error = error or ""
        return response

    service = messages.DESCRIPTOR.services_by_name["DRAPlugin"]
    methods = {"NodePrepareResources": prepare, "NodeUnprepareResources": unprepare}
    return UnaryService(service, methods)


def _references(request: Any) -> list[ClaimReference]:
    return [
        ClaimReference(namespace=claim.namespace, name=claim.name, uid=claim.uid)
        for claim in request.claims
    ]


def _device(messages: Any, device: PreparedDevice) -> Any:
    message = messages.Device(
        request_names=[device.request],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=list(device.cdi_ids),
    )
    if device.share_id is not None and "share_id" in messages.Device.DESCRIPTOR.fields_by_name:
        message.share_id = device.share_id
    return message


class _NoHealth:
    """A proper "unimplemented" for the kubelet's health stream (KEP-4680), which kubelets of 1.36
    ask every driver for; grpclib's own lacks a header and fills the kubelet's log."""

    def __mapping__(self) -> dict[str, Handler]:
        async def answer(_: Stream[Empty, Empty]) -> None:
            raise GRPCError(Status.UNIMPLEMENTED, f"{DRIVER_NAME} reports no device health")

        handler = Handler(answer, Cardinality.UNARY_STREAM, Empty, Empty)
        return {"/v1alpha1.DRAResourceHealth/NodeWatchResources": handler}


def registration_endpoint(socket: Path, registered: Callable[[str | None], None]) -> UnaryService:
    """The registration service; `registered` hears the kubelet's error, or None."""

    async def get_info(_: Any) -> Any:
        return pluginregistration_pb2.PluginInfo(
            type=_PLUGIN_TYPE,
            name=DRIVER_NAME,
            endpoint=str(socket),
            supported_versions=SUPPORTED_VERSIONS,
        )

    async def notify(status: Any) -> Any:
        registered(None if status.plugin_registered else status.error)
        return pluginregistration_pb2.RegistrationStatusResponse()

    service = pluginregistration_pb2.DESCRIPTOR.services_by_name["Registration"]
    methods = {"GetInfo": get_info, "NotifyRegistrationStatus": notify}
    return UnaryService(service, methods)


@dataclass(frozen=True, kw_only=True)
class SocketPaths:
    """Where the two sockets are; a pod's instance has names of its own."""

    dra: Path
    registration: Path


def socket_paths(plugin_dir: Path, registry_dir: Path, pod_uid: str | None) -> SocketPaths:
    """Both paths; raises InvalidInput when one is too long for a unix socket."""
    suffix = "" if pod_uid is None else f"-{hashlib.sha256(pod_uid.encode()).hexdigest()[:8]}"
    paths = SocketPaths(
        dra=plugin_dir / f"dra{suffix}.sock",
        registration=registry_dir / f"{DRIVER_NAME}{suffix}-reg.sock",
    )
    for path in (paths.dra, paths.registration):
        length = len(str(path).encode())
        if length > SOCKET_PATH_MAX_BYTES:
            raise InvalidInput(
                f"socket path {path} has {length} bytes, a unix socket takes "
                f"{SOCKET_PATH_MAX_BYTES}: give a shorter --kubelet-dir"
            )
    return paths


class DraServer:
    """Both sockets of one driver. Use as `async with`: the plugin socket is served before the
    kubelet can find the registration, and the registration goes first at the end."""

    def __init__(
        self, driver: DraDriver, paths: SocketPaths, registered: Callable[[str | None], None]
    ) -> None:
        self._paths = paths
        endpoints = [dra_endpoint(driver, pb) for pb in (dra_v1_pb2, dra_v1beta1_pb2)]
        self._dra = ClosingServer([*endpoints, _NoHealth()])
        self._registration = ClosingServer([registration_endpoint(paths.dra, registered)])

    async def __aenter__(self) -> "DraServer":
        """Raises OSError when a socket can't be made."""
        for path in (self._paths.dra, self._paths.registration):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        await self._dra.start(path=str(self._paths.dra))
        await self._registration.start(path=str(self._paths.registration))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Calls that are running are cancelled; the kubelet makes them again."""
        self._paths.registration.unlink(missing_ok=True)
        await self._registration.end()
        await self._dra.end()
        self._paths.dra.unlink(missing_ok=True)
