"""The kubelet's side of the sockets, by another gRPC implementation than the agent's (grpcio)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from casaba.wire._proto import dra_v1_pb2, pluginregistration_pb2

# Or grpcio takes the connection of an earlier channel, to a plugin that has ended since.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


class Kubelet:
    """Calls a driver's socket; `messages` is the generated module of the wanted version."""

    def __init__(self, socket: Path, messages: Any = dra_v1_pb2) -> None:
        self._socket = socket
        self._messages = messages

    async def prepare(self, *claims: tuple[str, str]) -> Any:
        """NodePrepareResources for (name, uid) pairs; the answers by UID."""
        return await self._call("Prepare", claims)

    async def unprepare(self, *claims: tuple[str, str]) -> Any:
        """NodeUnprepareResources for (name, uid) pairs; the answers by UID."""
        return await self._call("Unprepare", claims)

    async def _call(self, verb: str, claims: Sequence[tuple[str, str]]) -> Any:
        package = self._messages.DESCRIPTOR.package
        request = getattr(self._messages, f"Node{verb}ResourcesRequest")()
        for name, uid in claims:
            request.claims.add(namespace="default", name=name, uid=uid)
        answer = await _unary(
            self._socket,
            f"/{package}.DRAPlugin/Node{verb}Resources",
            request,
            getattr(self._messages, f"Node{verb}ResourcesResponse"),
        )
        return answer.claims


async def plugin_info(socket: Path) -> Any:
    """What the registration socket says."""
    return await _unary(
        socket,
        "/pluginregistration.Registration/GetInfo",
        pluginregistration_pb2.InfoRequest(),
        pluginregistration_pb2.PluginInfo,
    )


async def health(socket: Path) -> Any:
    """The first answer of the health stream that kubelets of 1.36 ask for."""
    async with _channel(socket) as channel:
        method = "/v1alpha1.DRAResourceHealth/NodeWatchResources"
        return await channel.unary_stream(method)(b"", timeout=10).read()


async def _unary(socket: Path, method: str, request: Any, answer: Any) -> Any:
    async with _channel(socket) as channel:
        call = channel.unary_unary(
            method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request, timeout=10)


def _channel(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix://{socket}", options=_OPTIONS)
