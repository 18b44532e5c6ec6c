"""The verbs of the Kubernetes API that change nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast

from casaba.kube.calls import Call, reading, selection, watching
from casaba.kube.config import KubeConfig
from casaba.kube.decoding import decoded
from casaba.kube.errors import Gone
from casaba.kube.resources import Resource
from casaba.kube.transport import ByteStream, Transport
from casaba.wire.kubernetes import Listing

T = TypeVar("T")

REQUEST_TIMEOUT_S = 30.0
PATIENCE_S = 60.0
"""How long one verb does as a server says that asks it to come again later."""

PAGE_SIZE = 500
"""Objects asked for at once; bounds the memory of a list."""

STREAM_GRACE_S = 30.0
"""A watch that outlives its own time limit by this much is dead, whatever its TCP says."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """Objects, and the version of the whole list from which a watch can go on."""

    items: tuple[T, ...]
    resource_version: str


class KubeReader:
    """What a KubeClient can do without changing anything; raises what it raises."""

    def __init__(
        self,
        config: KubeConfig,
        *,
        field_manager: str = "casaba",
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.config = config
        self._field_manager = field_manager
        self._transport = Transport(
            config,
            user_agent=field_manager,
            request_timeout_s=request_timeout_s,
            patience_s=patience_s,
        )

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.__aexit__()

    async def get(
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """One object."""
        path = resource.path(name, namespace, subresource)
        return await self._object(resource, Call(verb="get", method="GET", path=path))

    async def list(
        self,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listed[T]:
        """All objects that the selectors choose, page by page, as of one version."""
        path = resource.collection_path(namespace)
        query = selection(label_selector, field_selector)
        try:
            return await self._pages(resource, path, query | {"limit": str(PAGE_SIZE)})
        except Gone:  # the version was compacted between two pages
            return await self._pages(resource, path, query)

    async def read(
        self,
        resource: Resource[Any],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """An object, or a subresource such as a pod's `log`, as the bytes that were sent."""
        path = resource.path(name, namespace, subresource)
        return await self._transport.request(reading(path, query))

    async def read_path(self, path: str) -> bytes:
        """What is at a path outside of all resources, such as `/version`, as bytes."""
        return await self._transport.request(reading(path, None))

    async def open_stream(
        self,
        resource: Resource[Any],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str,
        query: Mapping[str, str] | None = None,
        limit_s: float | None = None,
    ) -> ByteStream:
        """A subresource that goes on, such as `log` with `follow`, for at most `limit_s`.

        The caller closes it.
        """
        path = resource.path(name, namespace, subresource)
        return await self._transport.stream(reading(path, query), limit_s=limit_s)

    async def open_watch(
        self,
        resource: Resource[Any],
        *,
        resource_version: str | None,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int,
    ) -> ByteStream:
        """The changes after `resource_version` as raw bytes, with bookmarks, for `timeout_s`.

        After None: all objects that there are, a bookmark that says so, and what comes then
        (KEP-3157); servers may refuse that as Invalid, or not know it and send no such bookmark.
        Most callers want an Informer, which also survives what ends a watch.
        """
        path = resource.collection_path(namespace)
        chosen = selection(label_selector, field_selector)
        call = watching(path, chosen, resource_version, timeout_s)
        return await self._transport.stream(call, limit_s=timeout_s + STREAM_GRACE_S)

    async def _object(self, resource: Resource[T], call: Call) -> T:
        return decoded(await self._transport.request(call), resource.form, str(call))

    async def _pages(self, resource: Resource[T], path: str, query: dict[str, str]) -> Listed[T]:
        # The form is only known at run time, which mypy has no words for.
        page_form = cast("type[Listing[T]]", Listing[resource.form])  # type: ignore[name-defined]
        items: tuple[T, ...] = ()
        while True:
            call = Call(verb="list", method="GET", path=path, query=query)
            page = decoded(await self._transport.request(call), page_form, str(call))
            items += page.items or ()
            if not page.metadata.continue_:
                return Listed(items, page.metadata.resource_version)
            query = query | {"continue": page.metadata.continue_}
