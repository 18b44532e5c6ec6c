"""A small API server for one resource, with a version log, that misbehaves when told to.

It keeps what a real one keeps: objects, a log of changes that can be compacted, and open
watches. Each test plays its scenario by changing objects and by breaking connections.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from aiohttp import web

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer to give instead of the right one."""

    code: int
    reason: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Object = field(default_factory=dict)
    message: str = "as told by the test"

    def response(self) -> web.Response:
        return web.json_response(self.status(), status=self.code, headers=self.headers)

    def status(self) -> Object:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
            "details": self.details,
        }


INITIAL_EVENTS_END = "k8s.io/initial-events-end"

WatchLists = Literal["served", "refused", "unknown"]
"""What becomes of a watch that asks for a list first: servers of today, of before 1.32 with the
feature off, and of before 1.27."""

EXPIRED = Answer(410, "Expired", message="too old resource version")


class OpenWatch:
    """One watch that a client holds open."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.since = int(request.query.get("resourceVersion", 0))
        self.response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.ended = asyncio.Event()

    async def run(self) -> web.StreamResponse:
        await self.ended.wait()
        return self.response

    async def send(self, kind: str, object_: Object, *, pieces: int = 1) -> None:
        line = json.dumps({"type": kind, "object": object_}).encode() + b"\n"
        size = -(-len(line) // pieces)
        for start in range(0, len(line), size):
            await self.response.write(line[start : start + size])
            await asyncio.sleep(0)

    def end(self) -> None:
        """Close cleanly: the last chunk is sent."""
        self.ended.set()

    def reset(self) -> None:
        """Close with a TCP reset."""
        transport = self._request.transport
        assert transport is not None
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        self.ended.set()


class ModelServer:
    """Serves /api/v1/nodes; `async with` runs it on a port of its own, unless one is given."""

    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, *, watch_lists: WatchLists = "refused"
    ) -> None:
        self.watch_lists = watch_lists
        self._host = host
        self._port = port
        self._uids = count(1)
        self.version = 10
        self.compacted = 0
        self.objects: dict[str, Object] = {}
        self.log: list[tuple[int, str, Object]] = []
        self.watches: list[OpenWatch] = []
        self.requests: list[web.BaseRequest] = []
        self.list_answers: list[Answer] = []
        self.watch_answers: list[Answer] = []
        self.watches_opened = 0
        self._changed = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def __aenter__(self) -> "ModelServer":
        app = web.Application()
        app.router.add_get("/api/v1/nodes", self._nodes)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for watch in self.watches:
            watch.end()
        await self._runner.cleanup()

    async def put(self, name: str, *, pieces: int = 1, **annotations: str) -> Object:
        """Create or change an object."""
        kind = "MODIFIED" if name in self.objects else "ADDED"
        uid = self.objects[name]["metadata"]["uid"] if name in self.objects else self._uid()
        self.version += 1
        metadata = {
            "name": name,
            "uid": uid,
            "resourceVersion": str(self.version),
            "annotations": annotations,
        }
        object_ = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        self.objects[name] = object_
        await self._record(kind, object_, pieces)
        return object_

    async def delete(self, name: str) -> None:
        """Delete an object; its last event carries the version of the deletion."""
        self.version += 1
        gone = self.objects.pop(name)
        metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
        await self._record("DELETED", {**gone, "metadata": metadata}, 1)

    def compact(self) -> None:
        """Forget the log: older versions can't be watched from any more."""
        self.compacted = self.version
        self.log.clear()

    async def bookmark(self) -> None:
        """Tell the open watches the version of now."""
        self.version += 1
        await self.send("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    async def send(self, kind: str, object_: Object) -> None:
        """Send a line to the open watches that is in no log."""
        for watch in self.watches:
            await watch.send(kind, object_)

    async def watched(self, times: int = 1) -> None:
        """Wait until so many watches have been opened, or refused, since the start."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.watches_opened >= times)

    def versions_watched_from(self) -> list[str]:
        asked = [request.query for request in self.requests]
        return [query["resourceVersion"] for query in asked if "resourceVersion" in query]

    def lists(self) -> int:
        """How many lists were asked for, watches that were refused as such not counted."""
        return sum(
            "watch" not in query or (self.watch_lists == "served" and "sendInitialEvents" in query)
            for query in (request.query for request in self.requests)
        )

    def end_watches(self) -> None:
        for watch in self.watches:
            watch.end()
        self.watches.clear()

    def reset_watches(self) -> None:
        for watch in self.watches:
            watch.reset()
        self.watches.clear()

    def _uid(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._uids):012}"

    async def _record(self, kind: str, object_: Object, pieces: int) -> None:
        self.log.append((self.version, kind, object_))
        for watch in self.watches:
            if watch.since < self.version:
                await watch.send(kind, object_, pieces=pieces)

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if "watch" in request.query:
            return await self._watch(request)
        if self.list_answers:
            return self.list_answers.pop(0).response()
        return web.json_response(
            {
                "kind": "NodeList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": str(self.version)},
                "items": list(self.objects.values()),
            }
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        lists = "sendInitialEvents" in request.query
        if lists and self.watch_lists == "refused":
            return Answer(422, "Invalid", message="sendInitialEvents is forbidden").response()
        answers = self.list_answers if lists else self.watch_answers
        if answers:
            answer = answers.pop(0)
            await self._count_watch()
            return answer.response()
        watch = OpenWatch(request)
        await watch.response.prepare(request)
        if lists:
            await self._start_with_all(watch)
        elif watch.since < self.compacted:
            await watch.send("ERROR", EXPIRED.status())
            await self._count_watch()
            return watch.response
        self.watches.append(watch)
        for version, kind, object_ in list(self.log):
            if version > watch.since:
                await watch.send(kind, object_)
        await self._count_watch()
        try:
            return await watch.run()
        finally:
            if watch in self.watches:
                self.watches.remove(watch)

    async def _start_with_all(self, watch: OpenWatch) -> None:
        watch.since = self.version
        objects = list(self.objects.values())
        version = str(self.version)
        for object_ in objects:
            await watch.send("ADDED", object_)
        if self.watch_lists == "served":
            end = {"resourceVersion": version, "annotations": {INITIAL_EVENTS_END: "true"}}
            await watch.send("BOOKMARK", {"metadata": end})

    async def _count_watch(self) -> None:
        self.watches_opened += 1
        async with self._changed:
            self._changed.notify_all()
