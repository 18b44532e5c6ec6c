"""A stand-in for NVIDIA's device plugin: it tells the kubelet of one device of a resource.

`python -m tests.cluster.device_plugin RESOURCE` on a node. The protocol is that of
k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1; its few messages, with short texts only, are written
out here.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server, Stream

FOLDER = "/var/lib/kubelet/device-plugins"
CHECKPOINT = f"{FOLDER}/kubelet_internal_checkpoint"
"""What the kubelet knows of plugins after its own restart."""

_SOCKET = "stand-in.sock"
_SERVICE = "/v1beta1.DevicePlugin"
_NOTHING = b""


class _AsTheyAre(CodecBase):
    """Messages are bytes."""

    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


def _text(field: int, content: bytes) -> bytes:
    """A field of text or of a message, of less than 128 bytes."""
    return bytes([field << 3 | 2, len(content)]) + content


def _device() -> bytes:
    """ListAndWatchResponse with one Device."""
    return _text(1, _text(1, b"GPU-0") + _text(2, b"Healthy"))


class _Plugin:
    """The service that the kubelet calls; it is never asked to allocate."""

    def __mapping__(self) -> dict[str, Handler]:
        return {
            f"{_SERVICE}/GetDevicePluginOptions": Handler(
                _tell_options, Cardinality.UNARY_UNARY, bytes, bytes
            ),
            f"{_SERVICE}/ListAndWatch": Handler(
                _list_and_watch, Cardinality.UNARY_STREAM, bytes, bytes
            ),
        }


async def _tell_options(stream: Stream[bytes, bytes]) -> None:
    await stream.recv_message()
    await stream.send_message(_NOTHING)


async def _list_and_watch(stream: Stream[bytes, bytes]) -> None:
    await stream.recv_message()
    await stream.send_message(_device())
    await asyncio.Event().wait()  # until the kubelet or this process ends


async def _offer(resource: str) -> None:
    server = Server([_Plugin()], codec=_AsTheyAre())
    await server.start(path=f"{FOLDER}/{_SOCKET}")
    await _register(resource)
    print(f"the kubelet knows {resource}", flush=True)
    await server.wait_closed()


async def _register(resource: str) -> None:
    request = _text(1, b"v1beta1") + _text(2, _SOCKET.encode()) + _text(3, resource.encode())
    async with Channel(path=f"{FOLDER}/kubelet.sock", codec=_AsTheyAre()) as channel:
        method = "/v1beta1.Registration/Register"
        await UnaryUnaryMethod(channel, method, bytes, bytes)(request)


if __name__ == "__main__":
    asyncio.run(_offer(sys.argv[1]))
