"""Logs of pods: found on the pod's node and passed through (kubelet, /containerLogs)."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo, find_resource
from casaba.simulation.api_server.statuses import ApiError, FieldError, bad_request, invalid
from casaba.simulation.api_server.store import Store
from casaba.simulation.authority import ClusterAuthority

_PASSED_ON = (
    "follow",
    "previous",
    "timestamps",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "limitBytes",
    "stream",
)
_NOT_NEGATIVE = ("tailLines",)
_POSITIVE = ("sinceSeconds", "limitBytes")
_KUBELET_CONNECT_S = 10.0
KUBELET_CLIENT = "kube-apiserver-kubelet-client"

_NODES = find_resource("", "v1", "nodes")
_LOG_OPTIONS = ResourceInfo(plural="podlogoptions", kind="PodLogOptions", namespaced=True)


class PodLogs:
    """Opens the logs of containers at their kubelets, with the API server's own certificate."""

    def __init__(self, store: Store, authority: ClusterAuthority) -> None:
        self._store = store
        self._tls = authority.client_context(KUBELET_CLIENT, ["system:masters"])

    def place(self, request: ResourceRequest) -> str | None:
        """The URL of a pod's log; None if it has no node yet, and so no log.

        Raises ApiError 400, 404 and 422.
        """
        _check_options(request)
        pod = self._store.get(request.resource, request.namespace, request.name).object
        container = _container(pod, request.query.get("container", ""))
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return None
        address, port = self._kubelet(request, node_name)
        path = "/".join(map(quote, (request.namespace, request.name, container)))
        query = "&".join(_passed_on(request.query))
        url = f"https://{address}:{port}/containerLogs/{path}"
        return f"{url}?{query}" if query else url

    @asynccontextmanager
    async def opened(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The kubelet's answer as it comes; raises ApiError 500 if there is none.

        Reading from it raises ConnectionResetError when the kubelet goes.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_KUBELET_CONNECT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            try:
                response = await session.get(url, ssl=self._tls)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _kubelet_away(url, error) from error
            async with response:
                if response.status >= 400:
                    raise _kubelet_refused(response.status, await response.text())
                try:
                    yield response
                except aiohttp.ClientPayloadError as error:
                    raise ConnectionResetError("the kubelet has broken off the log") from error

    def _kubelet(self, request: ResourceRequest, name: str) -> tuple[str, int]:
        node = self._store.find(_NODES, "", name) if _NODES else None
        if node is None:
            # The real one names the node, but takes it for a pod.
            details = {"name": name, "kind": request.resource.plural}
            raise ApiError(404, "NotFound", f'pods "{name}" not found', details=details)
        status = node.object.get("status") or {}
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        by_type = {each["type"]: each["address"] for each in status.get("addresses") or ()}
        address = by_type.get("InternalIP") or by_type.get("Hostname")
        if not address or not endpoint.get("Port"):
            known = ", ".join(by_type)
            raise ApiError(
                500,
                "InternalError",
                f"no preferred addresses found; known addresses: [{known}]",
            )
        return address, int(endpoint["Port"])


def _check_options(request: ResourceRequest) -> None:
    errors = tuple(_errors(request.query))
    if errors:
        raise invalid(_LOG_OPTIONS, request.name, errors)


def _errors(query: Mapping[str, str]) -> Iterator[FieldError]:
    for name in (*_NOT_NEGATIVE, *_POSITIVE):
        text = query.get(name)
        if text is None:
            continue
        try:
            value = int(text)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if value < 0 and name in _NOT_NEGATIVE:
            why = "must be greater than or equal to 0"
        elif value < 1 and name in _POSITIVE:
            why = "must be greater than 0"
        else:
            continue
        yield FieldError(field=name, message=f"Invalid value: {value}: {why}")


def _container(pod: Object, asked: str) -> str:
    spec: dict[str, Any] = pod["spec"]
    named = [each["name"] for each in spec.get("initContainers") or ()]
    containers = [each["name"] for each in spec["containers"]]
    named += containers
    name = pod["metadata"]["name"]
    if asked:
        if asked not in named:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(named) > 1:
        choices = " ".join(named)
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{choices}]"
        )
    return str(containers[0])


def _passed_on(query: Mapping[str, str]) -> Iterator[str]:
    for name in _PASSED_ON:
        if query.get(name):
            yield f"{name}={quote(query[name])}"


def _kubelet_away(url: str, error: Exception) -> ApiError:
    why = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        reason = os.strerror(error.os_error.errno).lower()
        why = f"dial tcp {error.host}:{error.port}: connect: {reason}"
    return ApiError(500, "InternalError", f'Get "{url}": {why}')


def _kubelet_refused(code: int, text: str) -> ApiError:
    reason = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound"}.get(code)
    return ApiError(code, reason or "InternalError", text.strip() or "unknown")
