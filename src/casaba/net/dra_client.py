"""The kubelet's side of a DRA driver's two sockets, as a simulated kubelet needs it.

Services, messages and versions are Kubernetes' (k8s.io/kubelet: dra/v1, dra/v1beta1,
dra-health/v1, dra-health/v1alpha1, pluginregistration/v1). Failures read as grpc-go's do.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpclib.client import Channel, Handler, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from grpclib.protocol import H2Protocol

from casaba.errors import CasabaError
from casaba.net.dra_sockets import ClaimReference
from casaba.wire._proto import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    pluginregistration_pb2,
)

DRA_SERVICES: Mapping[str, Any] = {
    "v1.DRAPlugin": dra_v1_pb2,
    "v1beta1.DRAPlugin": dra_v1beta1_pb2,
}
"""What a plugin may serve, by the name in its registration."""

HEALTH_SERVICES: Mapping[str, Any] = {
    "v1.DRAResourceHealth": dra_health_v1_pb2,
    "v1alpha1.DRAResourceHealth": dra_health_v1alpha1_pb2,
}
"""The optional health services, by name."""

_HEALTH = ("Unknown", "Healthy", "Unhealthy")


class PluginCallFailed(CasabaError):
    """A call of a plugin's socket got no answer; the message is a gRPC client's."""


@dataclass(frozen=True, kw_only=True)
class PluginInfo:
    """What a registration socket says."""

    type: str
    name: str
    endpoint: str
    supported_versions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AnsweredDevice:
    """A device of a plugin's answer; no request names mean all requests of the claim."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None


@dataclass(frozen=True, kw_only=True)
class PrepareAnswer:
    """The answer for one claim; an empty error means that the devices are ready."""

    devices: tuple[AnsweredDevice, ...] = ()
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class DeviceHealth:
    """A device's health as its driver saw it last."""

    pool: str
    device: str
    health: str
    """Healthy, Unhealthy or Unknown."""
    updated_s: int
    """Seconds since 1970."""
    timeout_s: int
    """Seconds for which it holds; 0 or less: the kubelet's default."""
    message: str


async def plugin_info(socket: Path, timeout_s: float) -> PluginInfo:
    """What the plugin behind a registration socket is; raises PluginCallFailed."""
    request = pluginregistration_pb2.InfoRequest()
    info = await _registration(socket, "GetInfo", request, "PluginInfo", timeout_s)
    return PluginInfo(
        type=info.type,
        name=info.name,
        endpoint=info.endpoint,
        supported_versions=tuple(info.supported_versions),
    )


async def notify_registration(socket: Path, error: str | None, timeout_s: float) -> None:
    """Tell the plugin that it is registered, or why not; raises PluginCallFailed."""
    status = pluginregistration_pb2.RegistrationStatus(
        plugin_registered=error is None, error=error or ""
    )
    answer = "RegistrationStatusResponse"
    await _registration(socket, "NotifyRegistrationStatus", status, answer, timeout_s)


async def _registration(
    socket: Path, name: str, request: Any, answer: str, timeout_s: float
) -> Any:
    channel = Channel(path=str(socket))
    try:
        method = UnaryUnaryMethod[Any, Any](
            channel,
            f"/pluginregistration.Registration/{name}",
            type(request),
            getattr(pluginregistration_pb2, answer),
        )
        return await _answered(method(request, timeout=timeout_s))
    finally:
        channel.close()


async def _answered(call: Awaitable[Any]) -> Any:
    with _failures_told():
        return await call


@contextlib.contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except GRPCError as error:
        code = error.status.name.title().replace("_", "")
        raise PluginCallFailed(f"rpc error: code = {code} desc = {error.message}") from error
    except TimeoutError as error:
        raise PluginCallFailed(
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        ) from error
    except (OSError, ProtocolError, StreamTerminatedError) as error:
        raise PluginCallFailed(f"rpc error: code = Unavailable desc = {error}") from error
    except AttributeError as error:
        if error.name != "_transport":  # which grpclib takes away from a lost connection
            raise
        raise PluginCallFailed(
            "rpc error: code = Unavailable desc = the connection was lost"
        ) from error


class _WatchedProtocol(H2Protocol):
    """A connection that tells when it is lost."""

    def __init__(self, channel: "_WatchedChannel") -> None:
        super().__init__(Handler(), channel._config, channel._h2_config)
        self._channel = channel

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._channel.changed()


class _WatchedChannel(Channel):
    """A channel that tells when its connection comes and goes."""

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        super().__init__(path=path)
        self.changed = changed

    @property
    def connected(self) -> bool:
        return self._connected

    def _protocol_factory(self) -> H2Protocol:
        return _WatchedProtocol(self)


class DraConnection:
    """The connection to one plugin's DRA socket, made anew by whatever call comes next.

    `changed` is called after it was made or lost; `connected` says which.
    """

    def __init__(self, endpoint: str, service: str, changed: Callable[[], None]) -> None:
        self._messages = DRA_SERVICES[service]
        self._changed = changed
        self._channel = _WatchedChannel(endpoint, changed)
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._channel.connected

    def close(self) -> None:
        """End the connection for good; calls that are running fail."""
        self._closed = True
        self._channel.close()

    async def connect(self) -> None:
        """Make the connection if there is none; raises PluginCallFailed."""
        if self._closed:
            raise PluginCallFailed("rpc error: code = Canceled desc = the connection is closing")
        if self.connected:
            return
        with _failures_told():
            await self._channel.__connect__()
        self._changed()

    async def prepare(
        self, claims: Sequence[ClaimReference], timeout_s: float
    ) -> Mapping[str, PrepareAnswer]:
        """NodePrepareResources; the answers by claim UID. Raises PluginCallFailed.

        If cancelled, or if it fails: the plugin may have done it.
        """
        answer = await self._call("Prepare", claims, timeout_s)
        return {
            uid: PrepareAnswer(devices=tuple(map(_device, entry.devices)), error=entry.error)
            for uid, entry in answer.claims.items()
        }

    async def unprepare(
        self, claims: Sequence[ClaimReference], timeout_s: float
    ) -> Mapping[str, str]:
        """NodeUnprepareResources; the error by claim UID, empty if all went well.

        Raises PluginCallFailed. If cancelled, or if it fails: the plugin may have done it.
        """
        answer = await self._call("Unprepare", claims, timeout_s)
        return {uid: entry.error for uid, entry in answer.claims.items()}

    async def _call(self, verb: str, claims: Sequence[ClaimReference], timeout_s: float) -> Any:
        service = self._messages.DESCRIPTOR.services_by_name["DRAPlugin"]
        request = getattr(self._messages, f"Node{verb}ResourcesRequest")()
        for claim in claims:
            request.claims.add(namespace=claim.namespace, name=claim.name, uid=claim.uid)
        method = UnaryUnaryMethod[Any, Any](
            self._channel,
            f"/{service.full_name}/Node{verb}Resources",
            type(request),
            getattr(self._messages, f"Node{verb}ResourcesResponse"),
        )
        await self.connect()
        return await _answered(method(request, timeout=timeout_s))

    async def watch_health(self, service: str) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """Lists of all devices of the driver, one for each change; raises PluginCallFailed."""
        messages = HEALTH_SERVICES[service]
        name = messages.DESCRIPTOR.services_by_name["DRAResourceHealth"].full_name
        method = UnaryStreamMethod[Any, Any](
            self._channel,
            f"/{name}/NodeWatchResources",
            messages.NodeWatchResourcesRequest,
            messages.NodeWatchResourcesResponse,
        )
        with _failures_told():
            await self.connect()
            async with method.open() as stream:
                await stream.send_message(messages.NodeWatchResourcesRequest(), end=True)
                async for answer in stream:
                    yield tuple(map(_health, answer.devices))


def _device(device: Any) -> AnsweredDevice:
    known = "share_id" in device.DESCRIPTOR.fields_by_name
    return AnsweredDevice(
        requests=tuple(device.request_names),
        pool=device.pool_name,
        device=device.device_name,
        cdi_ids=tuple(device.cdi_device_ids),
        share_id=device.share_id if known and device.HasField("share_id") else None,
    )


def _health(entry: Any) -> DeviceHealth:
    known = 0 <= entry.health < len(_HEALTH)
    return DeviceHealth(
        pool=entry.device.pool_name,
        device=entry.device.device_name,
        health=_HEALTH[entry.health if known else 0],
        updated_s=entry.last_updated_time,
        timeout_s=entry.health_check_timeout_seconds,
        message=entry.message,
    )
