"""The HTTP side of the server: who asks, for what, may they, and what they get."""

import asyncio
import logging
import ssl
from collections.abc import Mapping

import msgspec
from aiohttp import web

from casaba.simulation.api_server.access import Objects
from casaba.simulation.api_server.authentication import Authenticator
from casaba.simulation.api_server.authorization import check_authorized, check_path_authorized
from casaba.simulation.api_server.faults import Faults, LostAnswer, Refusal, Slowness
from casaba.simulation.api_server.forms import Form, form
from casaba.simulation.api_server.http_answers import HEADERS, JSON, answer, refusal, text_answer
from casaba.simulation.api_server.http_paths import path_answer
from casaba.simulation.api_server.http_watch import BOOKMARK_EVERY_S, WatchStream
from casaba.simulation.api_server.impersonation import impersonated
from casaba.simulation.api_server.metrics import RequestTotals
from casaba.simulation.api_server.pod_logs import PodLogs
from casaba.simulation.api_server.protobuf_bodies import PROTOBUF, from_protobuf
from casaba.simulation.api_server.requests import ResourceRequest, UserInfo
from casaba.simulation.api_server.routing import is_of_known_group, is_resource_path, route
from casaba.simulation.api_server.statuses import ApiError, no_such_path
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.verbs import Verbs
from casaba.simulation.api_server.watch import WatchFeed
from casaba.simulation.api_server.write_options import check_content_type

BODY_LIMIT_BYTES = 3 * 1024 * 1024

_NOT_FOUND = "404 page not found\n"
_REASONS = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

log = logging.getLogger(__name__)


class HttpDoor:
    """Answers every request of one server."""

    def __init__(
        self,
        *,
        store: Store,
        verbs: Verbs,
        authenticator: Authenticator,
        objects: Objects,
        pod_logs: PodLogs,
        faults: Faults,
    ) -> None:
        self._store = store
        self._verbs = verbs
        self._authenticator = authenticator
        self._objects = objects
        self._pod_logs = pod_logs
        self._faults = faults
        self._totals = RequestTotals()
        self._watches: set[WatchStream] = set()
        self.bookmark_every_s = BOOKMARK_EVERY_S

    def send_bookmarks(self) -> None:
        """Tell every watch that takes bookmarks the version of now."""
        for watch in self._watches:
            watch.want_bookmark()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Whatever is asked; no request can break the server."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return refusal(error)
        except web.HTTPRequestEntityTooLarge:
            message = f"Request entity too large: limit is {BODY_LIMIT_BYTES}"
            return refusal(ApiError(413, "RequestEntityTooLarge", message))
        except asyncio.CancelledError:
            raise
        except ConnectionError:
            return _broken_off(request)
        except Exception:
            log.exception("simulation.request_failed", extra={"path": request.path})
            message = "an error of the simulated API server; its log has the details"
            return refusal(ApiError(500, "InternalError", message))

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        user = self._user(http)
        if not is_resource_path(http.path):
            check_path_authorized(user, http.method.lower(), http.path, self._objects)
            return self._of_path(http)
        request = await _resource_request(http, user)
        try:
            response = await self._of_resource(request, http)
        except ApiError as error:
            self._totals.note(request, error.code)
            raise
        self._totals.note(request, response.status)
        return response

    async def _of_resource(
        self, request: ResourceRequest, http: web.BaseRequest
    ) -> web.StreamResponse:
        check_authorized(request, self._objects)
        check_content_type(request)
        await self._meet_faults(request)
        lost = self._faults.take(LostAnswer, request)
        if lost and (not lost.done or request.verb == "watch"):
            _lose(lost)
        if request.verb == "watch":
            return await self._watch(request, http)
        if request.subresource == "log":
            return await self._log(request, http)
        wanted = _wanted_form(request, http)
        done = await self._verbs.done(request)
        if lost:
            _lose(lost)
        return answer(wanted, request.resource, done)

    def _of_path(self, http: web.BaseRequest) -> web.Response:
        if http.path == "/metrics":
            return text_answer(self._totals.text())
        if found := path_answer(http.path, http.headers, http.query):
            return found
        if is_of_known_group(http.path):
            raise no_such_path()
        return text_answer(_NOT_FOUND, code=404)

    def _user(self, http: web.BaseRequest) -> UserInfo:
        channel = http.transport.get_extra_info("ssl_object") if http.transport else None
        certificate = None
        if isinstance(channel, ssl.SSLObject):
            certificate = channel.getpeercert(binary_form=True)
        user = self._authenticator.user(http.headers.get("Authorization"), certificate)
        return impersonated(user, http.headers, self._objects)

    async def _meet_faults(self, request: ResourceRequest) -> None:
        if slowness := self._faults.take(Slowness, request):
            await asyncio.sleep(slowness.delay_s)
        if fault := self._faults.take(Refusal, request):
            reason = _REASONS.get(fault.code, "")
            raise ApiError(fault.code, reason, fault.message, retry_after_s=fault.retry_after_s)

    async def _watch(self, request: ResourceRequest, http: web.BaseRequest) -> web.StreamResponse:
        wanted = _wanted_form(request, http)
        with WatchFeed(self._store, request) as feed:
            response = web.StreamResponse(headers={**HEADERS, "Content-Type": JSON})
            response.enable_chunked_encoding()
            await response.prepare(http)
            stream = WatchStream(response, feed, wanted, self.bookmark_every_s)
            stream.plan(self._faults, request)
            self._watches.add(stream)
            try:
                if await stream.run():
                    raise ConnectionResetError
            finally:
                self._watches.discard(stream)
        return response

    async def _log(self, request: ResourceRequest, http: web.BaseRequest) -> web.StreamResponse:
        url = self._pod_logs.place(request)
        if url is None:
            return web.Response(status=204, headers=HEADERS)
        async with self._pod_logs.opened(url) as kubelet:
            response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/plain"})
            response.enable_chunked_encoding()
            await response.prepare(http)
            async for chunk in kubelet.content.iter_any():
                await response.write(chunk)
        return response


async def _resource_request(http: web.BaseRequest, user: UserInfo) -> ResourceRequest:
    query: Mapping[str, str] = dict(http.query)
    found = route(http.method, http.path, query)
    body, content_type = await _body(http)
    return ResourceRequest(
        user=user,
        verb=found.verb,
        resource=found.resource,
        namespace=found.namespace,
        name=found.name,
        subresource=found.subresource,
        query=query,
        content_type=content_type,
        body=body,
        user_agent=http.headers.get("User-Agent", ""),
    )


async def _body(http: web.BaseRequest) -> tuple[bytes, str]:
    """The body and its content type, as something that the server reads."""
    body = await http.read()
    content_type = http.content_type if "Content-Type" in http.headers else ""
    if body and content_type == PROTOBUF:
        return msgspec.json.encode(from_protobuf(body)), JSON
    return body, content_type


def _wanted_form(request: ResourceRequest, http: web.BaseRequest) -> Form:
    accept = http.headers.get("Accept", "")
    return form(accept, request.query.get("includeObject", ""), is_list=request.verb == "list")


def _lose(lost: LostAnswer) -> None:
    if lost.then is not None:
        lost.then()
    raise ConnectionResetError


def _broken_off(http: web.BaseRequest) -> web.Response:
    """End the connection as a broken network would; the response reaches nobody.

    An error instead of it would be logged by aiohttp as a failure of ours.
    """
    if http.transport:
        http.transport.abort()
    return web.Response()
