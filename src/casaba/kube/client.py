"""The verbs of the Kubernetes API."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack, cast

from casaba.kube.bodies import (
    Body,
    Patch,
    Propagation,
    WriteOptions,
    delete_body,
    object_body,
    patch_body,
    write_query,
)
from casaba.kube.config import KubeConfig
from casaba.kube.decoding import decoded
from casaba.kube.errors import Gone
from casaba.kube.resources import Resource
from casaba.kube.transport import ByteStream, Call, Transport
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


class KubeClient:
    """One API server, one identity; use as `async with KubeClient(load_config()) as client`.

    Every verb raises Refused (see `kube.errors` for its kinds), Unreachable and Undecodable, and
    KubeConfigError when a program that supplies our credentials fails.
    A server that says when to come again is waited for, up to `patience_s` in all.
    If one that writes is cancelled, or raises Unreachable: it may have been done.
    """

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

    async def __aenter__(self) -> "KubeClient":
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

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
        query = _selection(label_selector, field_selector)
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
        return await self._transport.request(_reading(path, query))

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
        return await self._transport.stream(_reading(path, query), limit_s=limit_s)

    async def create(
        self,
        resource: Resource[T],
        body: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Create an object, named by the body or, from its `generateName`, by the server.

        With `name` and `subresource` (`binding`, `eviction`, `token`) it is one of that object,
        and the answer often of another kind: use `resource.decoded_as(dict)`.
        """
        if (name is None) != (subresource is None):
            raise ValueError("an object's name is only given to create a subresource of it")
        call = Call(
            verb="create",
            method="POST",
            path=resource.path(name, namespace, subresource)
            if name is not None
            else resource.collection_path(namespace),
            query=write_query(options, self._field_manager),
            body=object_body(resource, body, subresource),
        )
        return await self._object(resource, call)

    async def update(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Replace an object by a whole one that was read as `dict` or `msgspec.Raw`.

        With another `metadata.resourceVersion` than the server's: Conflict; with none, whatever
        others wrote meanwhile is lost.
        """
        call = Call(
            verb="update",
            method="PUT",
            path=resource.path(name, namespace, subresource),
            query=write_query(options, self._field_manager),
            body=object_body(resource, body, subresource),
        )
        return await self._object(resource, call)

    async def apply(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        force: bool = True,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Server-side apply: these fields are ours, create the object if it is not there.

        With `force`, fields are taken over from other managers; without it that is a Conflict.
        """
        query = write_query(options, self._field_manager)
        call = Call(
            verb="apply",
            method="PATCH",
            path=resource.path(name, namespace, subresource),
            query=query | {"force": "true" if force else "false"},
            body=object_body(resource, body, subresource),
            content_type="application/apply-patch+yaml",
        )
        return await self._object(resource, call)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        strategic: bool = False,
        uid: str | None = None,
        resource_version: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Change an object. `uid` and `resource_version` are preconditions, else Conflict.

        A `strategic` merge patch merges lists by the keys that the API defines for them.
        """
        content_type, body = patch_body(
            patch, strategic=strategic, uid=uid, resource_version=resource_version
        )
        call = Call(
            verb="patch",
            method="PATCH",
            path=resource.path(name, namespace, subresource),
            query=write_query(options, self._field_manager),
            body=body,
            content_type=content_type,
        )
        return await self._object(resource, call)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for an object's deletion; preconditions that fail are a Conflict.

        Finalizers may keep it for a while, and so does a pod's grace period, which 0 ends at
        once. Raises NotFound if it is not there.
        """
        body = delete_body(
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period_s=grace_period_s,
            dry_run=dry_run,
        )
        path = resource.path(name, namespace)
        await self._transport.request(Call(verb="delete", method="DELETE", path=path, body=body))

    async def delete_collection(
        self,
        resource: Resource[Any],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        propagation: Propagation | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for the deletion of all objects that the selectors choose: of all, without any."""
        call = Call(
            verb="delete",
            method="DELETE",
            path=resource.collection_path(namespace),
            query=_selection(label_selector, field_selector),
            body=delete_body(
                propagation=propagation, grace_period_s=grace_period_s, dry_run=dry_run
            ),
        )
        await self._transport.request(call)

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
        start = (
            {"resourceVersion": resource_version}
            if resource_version is not None
            else {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        )
        query = _selection(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
            **start,
        }
        path = resource.collection_path(namespace)
        call = Call(verb="watch", method="GET", path=path, query=query)
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


def _reading(path: str, query: Mapping[str, str] | None) -> Call:
    return Call(verb="get", method="GET", path=path, query=query or {}, accept="*/*")


def _selection(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in query.items() if value}
