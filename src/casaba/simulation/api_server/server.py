"""The simulated API server as a whole: its parts put together, its sockets, its identities."""

import asyncio
import datetime
import ipaddress
import socket
import uuid
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from aiohttp import web

from casaba.errors import InvalidInput
from casaba.kube import KubeConfig
from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.authentication import Authenticator
from casaba.simulation.api_server.bootstrap import bootstrap_objects
from casaba.simulation.api_server.deletion import timestamp
from casaba.simulation.api_server.faults import Faults
from casaba.simulation.api_server.http_door import BODY_LIMIT_BYTES, HttpDoor
from casaba.simulation.api_server.identities import (
    ADMIN,
    ADMIN_GROUPS,
    client_config,
    kubeconfig_document,
)
from casaba.simulation.api_server.pod_logs import PodLogs
from casaba.simulation.api_server.questions import Questions
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import RESOURCES
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.verbs import Verbs
from casaba.simulation.api_server.webhook_calls import ServiceAddresses
from casaba.simulation.authority import ClusterAuthority

SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default.svc", "127.0.0.1", "::1")

LOG_LIMIT = 10_000
"""So many changes of each resource are remembered for watches."""

_BORN = ("uid", "creationTimestamp")
"""What an object keeps of its metadata for life."""

_STOP_S = 2.0
_LISTEN_BACKLOG = 512

_BY_KIND = {(info.api_version, info.kind): info for info in RESOURCES}
_BY_PLURAL = {info.plural: info for info in RESOURCES}


class SimulatedApiServer:
    """A Kubernetes API server in memory; use as `async with SimulatedApiServer() as server`.

    A test double and a demo: it listens on loopback only and keeps nothing.
    """

    def __init__(
        self,
        *,
        authority: ClusterAuthority | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        log_limit: int = LOG_LIMIT,
        service_addresses: ServiceAddresses | None = None,
    ) -> None:
        """`service_addresses` say where webhooks named by a service are.

        Raises InvalidInput for an address that others could reach.
        """
        _check_loopback(host)
        self.authority = authority or ClusterAuthority.create()
        self.faults = Faults()
        self._host = host
        self._port = port
        self._tls = self.authority.server_context([*{*SERVER_NAMES, host}])
        self._store = Store(log_limit=log_limit)
        _bootstrap(self._store)
        self._door = self._assembled(service_addresses)
        self._http: web.Server | None = None
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> "SimulatedApiServer":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where it listens; with a port of 0 only known once it has started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self._port}"

    @property
    def version(self) -> int:
        """The latest resourceVersion."""
        return self._store.version

    async def start(self) -> None:
        """Listen, again on the same port if it has listened before."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        bound = socket.create_server((self._host, self._port), family=family)
        self._port = bound.getsockname()[1]
        self._http = web.Server(
            self._door.answer,
            request_factory=_request,
            handler_cancellation=True,
            access_log=None,
        )
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._http, sock=bound, ssl=self._tls, backlog=_LISTEN_BACKLOG
        )

    async def stop(self) -> None:
        """Stop listening and break every connection; the objects stay."""
        if self._listener is None or self._http is None:
            return
        self._listener.close()
        for connection in self._http.connections:
            if connection.transport:
                connection.transport.abort()
        await self._http.shutdown(_STOP_S)
        await self._listener.wait_closed()
        self._listener = self._http = None

    async def restart(self) -> None:
        """Break every connection and listen again; the objects stay."""
        await self.stop()
        await self.start()

    def compact(self) -> None:
        """Forget the past: watches and pages of older versions get 410."""
        self._store.compact()

    def seed(self, objects: Iterable[Object]) -> None:
        """Put whole objects there, in the place of those of their names, asking nobody."""
        for object_ in objects:
            info = _BY_KIND[object_["apiVersion"], object_["kind"]]
            metadata = object_["metadata"]
            known = self._store.find(info, metadata.get("namespace", ""), metadata["name"])
            if known is None:
                _put(self._store, object_)
            else:
                born = {key: known.object["metadata"][key] for key in _BORN}
                new = {**object_, "metadata": {**metadata, **born}}
                self._store.replace(info, new, of=known)

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that takes them, before its minute is over."""
        self._door.send_bookmarks()

    def admin_config(self) -> KubeConfig:
        """Access of one who may do everything."""
        return client_config(self.authority, self.url, ADMIN, ADMIN_GROUPS)

    def kubeconfig(self, username: str = ADMIN, groups: Sequence[str] = ADMIN_GROUPS) -> Object:
        """A kubeconfig document of a user, with a client certificate in it."""
        return kubeconfig_document(self.authority, self.url, username, groups)

    def objects(self, plural: str) -> Iterable[Object]:
        """The stored objects of a resource; nobody may change them."""
        return [found.object for found in self._store.all(_BY_PLURAL[plural])]

    def _assembled(self, service_addresses: ServiceAddresses | None) -> HttpDoor:
        store, authority, objects = self._store, self.authority, self.objects
        authenticator = Authenticator(authority, objects)
        questions = Questions(authority, authenticator, objects, _utc_now)
        admission = Admission(objects, service_addresses=service_addresses)
        verbs = Verbs(store, admission, questions, _utc_now)
        return HttpDoor(
            store=store,
            verbs=verbs,
            authenticator=authenticator,
            objects=objects,
            pod_logs=PodLogs(store, authority),
            faults=self.faults,
        )


def _bootstrap(store: Store) -> None:
    for object_ in bootstrap_objects():
        _put(store, object_)


def _put(store: Store, object_: Object) -> None:
    info = _BY_KIND[object_["apiVersion"], object_["kind"]]
    born = {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp(_utc_now())}
    store.create(info, {**object_, "metadata": {**object_["metadata"], **born}})


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _check_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise InvalidInput(
            "the simulated API server is no cluster and listens on loopback only, "
            f"not on {host!r}; use 127.0.0.1"
        )


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    """As aiohttp makes requests, but for the size of their bodies."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT_BYTES
    )
