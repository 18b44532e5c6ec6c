"""A DRA plugin that does as a test says, by another gRPC implementation than ours (grpcio)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio

from casaba.wire._proto import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    pluginregistration_pb2,
)

DRIVER = "gpu.example.com"

Answer = Callable[[Any], Any]
"""From a request message to the fields of the answer's `claims`, by UID."""

_MESSAGES = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}
_HEALTH = {"v1": dra_health_v1_pb2, "v1alpha1": dra_health_v1alpha1_pb2}


class Refusal(Exception):
    """Raised by an `Answer`: the whole call fails with a gRPC status."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


def one_device(request: Any) -> dict[str, Any]:
    """One device for every claim."""
    return {
        claim.uid: {
            "devices": [
                {
                    "request_names": ["gpu"],
                    "pool_name": "node-1",
                    "device_name": "gpu-0",
                    "cdi_device_ids": [f"example.com/gpu={claim.uid}"],
                }
            ]
        }
        for claim in request.claims
    }


def no_error(request: Any) -> dict[str, Any]:
    """Nothing went wrong for any claim."""
    return {claim.uid: {} for claim in request.claims}


@dataclass
class ScriptedPlugin:
    """Serves both sockets in `folder` and `registry`; use as `async with`."""

    folder: Path
    registry: Path
    driver: str = DRIVER
    name: str = "plugin"
    """Tells two plugins' sockets apart."""
    kind: str = "DRAPlugin"
    versions: Sequence[str] = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
    endpoint: str | None = None
    """What the registration says; None: where the DRA socket is."""
    prepare: Answer = one_device
    unprepare: Answer = no_error
    calls: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """(version, method, claim names) of every call, in order."""
    told: list[str] = field(default_factory=list)
    """What the kubelet said of the registration: its error, or an empty text."""
    requests: list[Any] = field(default_factory=list)
    """The messages of these calls."""
    answered: list[str] = field(default_factory=list)
    """Methods of the calls that came to their end."""
    info_failures: int = 0
    """So many questions of the registration fail."""
    gate: asyncio.Event | None = None
    """Prepare waits for this."""
    health: "asyncio.Queue[list[Mapping[str, Any]]]" = field(default_factory=asyncio.Queue)
    health_asked: list[str] = field(default_factory=list)
    """Versions of the health service that the kubelet asked for."""
    health_ended: int = 0
    """So many of these streams are over."""

    @property
    def dra_socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @property
    def registration_socket(self) -> Path:
        return self.registry / f"{self.name}-reg.sock"

    async def __aenter__(self) -> "ScriptedPlugin":
        self._dra, self._registration = grpc.aio.server(), grpc.aio.server()
        for version, messages in _MESSAGES.items():
            self._serve_dra(version, messages)
        for version, messages in _HEALTH.items():
            self._serve_health(version, messages)
        self._serve_registration()
        for server, path in (
            (self._dra, self.dra_socket),
            (self._registration, self.registration_socket),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            server.add_insecure_port(f"unix:{path}")
            await server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.registration_socket.unlink(missing_ok=True)
        await self._registration.stop(0)
        await self._dra.stop(0)
        self.dra_socket.unlink(missing_ok=True)

    async def stop_dra(self) -> None:
        """The DRA socket goes, the registration stays: a driver that hangs."""
        await self._dra.stop(0)

    def _serve_dra(self, version: str, messages: Any) -> None:
        async def prepare(request: Any, call: Any) -> Any:
            self._note(version, "prepare", request)
            if self.gate is not None:
                await self.gate.wait()
            claims = await _answered(self.prepare, request, call)
            self.answered.append("prepare")
            return _response(messages.NodePrepareResourcesResponse, claims)

        async def unprepare(request: Any, call: Any) -> Any:
            self._note(version, "unprepare", request)
            claims = await _answered(self.unprepare, request, call)
            self.answered.append("unprepare")
            return _response(messages.NodeUnprepareResourcesResponse, claims)

        handlers = {
            "NodePrepareResources": _unary(prepare, messages.NodePrepareResourcesRequest),
            "NodeUnprepareResources": _unary(unprepare, messages.NodeUnprepareResourcesRequest),
        }
        service = messages.DESCRIPTOR.services_by_name["DRAPlugin"].full_name
        self._add(self._dra, service, handlers)

    def _serve_health(self, version: str, messages: Any) -> None:
        async def watch(_: Any, __: Any) -> AsyncIterator[Any]:
            self.health_asked.append(version)
            try:
                while True:
                    devices = await self.health.get()
                    yield messages.NodeWatchResourcesResponse(devices=devices)
            finally:
                self.health_ended += 1

        handler = grpc.unary_stream_rpc_method_handler(
            watch,
            request_deserializer=messages.NodeWatchResourcesRequest.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        service = messages.DESCRIPTOR.services_by_name["DRAResourceHealth"].full_name
        self._add(self._dra, service, {"NodeWatchResources": handler})

    def _serve_registration(self) -> None:
        async def get_info(_: Any, call: Any) -> Any:
            if self.info_failures:
                self.info_failures -= 1
                await call.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
            return pluginregistration_pb2.PluginInfo(
                type=self.kind,
                name=self.driver,
                endpoint=str(self.dra_socket) if self.endpoint is None else self.endpoint,
                supported_versions=self.versions,
            )

        async def notify(status: Any, _: Any) -> Any:
            self.told.append("" if status.plugin_registered else status.error)
            return pluginregistration_pb2.RegistrationStatusResponse()

        handlers = {
            "GetInfo": _unary(get_info, pluginregistration_pb2.InfoRequest),
            "NotifyRegistrationStatus": _unary(notify, pluginregistration_pb2.RegistrationStatus),
        }
        self._add(self._registration, "pluginregistration.Registration", handlers)

    def _note(self, version: str, method: str, request: Any) -> None:
        self.calls.append((version, method, tuple(claim.name for claim in request.claims)))
        self.requests.append(request)

    @staticmethod
    def _add(server: Any, service: str, handlers: Mapping[str, Any]) -> None:
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, dict(handlers))]
        )


def _unary(behaviour: Any, request: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        behaviour,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


async def _answered(answer: Answer, request: Any, call: Any) -> Any:
    try:
        return answer(request)
    except Refusal as refusal:
        return await call.abort(refusal.code, refusal.details)


def _response(kind: Any, claims: Mapping[str, Any]) -> Any:
    response = kind()
    for uid, fields in claims.items():
        entry = response.claims[uid]
        entry.error = fields.get("error", "")
        for device in fields.get("devices", ()):
            entry.devices.add(**device)
    return response
