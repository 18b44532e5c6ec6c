"""The verbs of the Kubernetes API; those that only read are in `reading`."""

from typing import Any, TypeVar, Unpack

from casaba.kube.bodies import (
    Body,
    Content,
    Patch,
    Propagation,
    WriteOptions,
    apply_body,
    delete_body,
    object_body,
    patch_body,
    write_query,
)
from casaba.kube.calls import Call, selection
from casaba.kube.reading import KubeReader
from casaba.kube.resources import Resource

T = TypeVar("T")

_METHODS = {"create": "POST", "update": "PUT", "apply": "PATCH", "patch": "PATCH"}
"""HTTP's word for each verb that writes an object."""


class KubeClient(KubeReader):
    """One API server, one identity; use as `async with KubeClient(load_config()) as client`.

    Every verb raises Refused (see `kube.errors` for its kinds), Unreachable and Undecodable, and
    KubeConfigError when a program that supplies our credentials fails.
    A server that says when to come again is waited for, up to `patience_s` in all.
    If one that writes is cancelled, or raises Unreachable: it may have been done.
    """

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
        path = (
            resource.path(name, namespace, subresource)
            if name is not None
            else resource.collection_path(namespace)
        )
        content = object_body(resource, body, subresource)
        return await self._write(resource, "create", path, content, options)

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
        path = resource.path(name, namespace, subresource)
        content = object_body(resource, body, subresource)
        return await self._write(resource, "update", path, content, options)

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
        path = resource.path(name, namespace, subresource)
        content = apply_body(object_body(resource, body, subresource))
        return await self._write(resource, "apply", path, content, options, force=force)

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
        path = resource.path(name, namespace, subresource)
        content = patch_body(patch, strategic=strategic, uid=uid, resource_version=resource_version)
        return await self._write(resource, "patch", path, content, options)

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
            query=selection(label_selector, field_selector),
            body=delete_body(
                propagation=propagation, grace_period_s=grace_period_s, dry_run=dry_run
            ),
        )
        await self._transport.request(call)

    async def _write(
        self,
        resource: Resource[T],
        verb: str,
        path: str,
        content: Content,
        options: WriteOptions,
        *,
        force: bool | None = None,
    ) -> T:
        call = Call(
            verb=verb,
            method=_METHODS[verb],
            path=path,
            query=write_query(options, self._field_manager, force=force),
            body=content.body,
            content_type=content.type,
        )
        return await self._object(resource, call)
