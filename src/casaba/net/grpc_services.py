"""gRPC services on unix sockets: methods of a descriptor as coroutines, and a server that ends."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from grpclib.const import Cardinality, Handler
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream


class Servable(Protocol):
    """What grpclib takes for a service."""

    def __mapping__(self) -> dict[str, Handler]: ...


class UnaryService:
    """One gRPC service: method names of a descriptor to coroutines."""

    def __init__(
        self, service: Any, methods: Mapping[str, Callable[[Any], Awaitable[Any]]]
    ) -> None:
        self._service = service
        self._methods = methods

    def __mapping__(self) -> dict[str, Handler]:
        return {
            f"/{self._service.full_name}/{name}": self._handler(name, call)
            for name, call in self._methods.items()
        }

    def _handler(self, name: str, call: Callable[[Any], Awaitable[Any]]) -> Handler:
        method = self._service.methods_by_name[name]

        async def answer(stream: Stream[Any, Any]) -> None:
            request = await stream.recv_message()
            await stream.send_message(await call(request))

        return Handler(
            answer,
            Cardinality.UNARY_UNARY,
            method.input_type._concrete_class,
            method.output_type._concrete_class,
        )


class ClosingServer(Server):
    """grpclib's server, which at its end also drops the connections that clients keep open."""

    def __init__(self, services: Sequence[Servable]) -> None:
        super().__init__(services)
        self._connections: WeakSet[H2Protocol] = WeakSet()

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self._connections.add(protocol)
        return protocol

    async def end(self) -> None:
        """Stop listening, cancel what is running, and drop every connection."""
        self.close()
        await self.wait_closed()
        for protocol in self._connections:
            if hasattr(protocol, "connection"):
                protocol.connection.close()
