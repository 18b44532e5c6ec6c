"""Create, update, patch and apply: what a write goes through before it is stored.

    decode ─► admission that may change it ─► prepare (name, the server's metadata, first status)
           ─► validation ─► admission that may refuse it ─► ownership of fields
           ─► store, unless it is a dry run

Admission may call webhooks. If the object has changed meanwhile, a write that named no version
is done again on the new state, as on the real server.
"""

import datetime
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.deletion import goes_by_update, timestamp
from casaba.simulation.api_server.kind_rules import created_by_update
from casaba.simulation.api_server.managed_fields import tracked
from casaba.simulation.api_server.object_meta import (
    born,
    check_named,
    check_place,
    check_replaceable,
    placed,
    succeeded,
)
from casaba.simulation.api_server.proposals import Proposal, changed_object, new_object
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.statuses import (
    ApiError,
    already_exists,
    invalid,
    not_found,
)
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.strategy import (
    prepared_for_create,
    prepared_for_update,
    validated,
)
from casaba.simulation.api_server.watch_log import Stored
from casaba.simulation.api_server.write_options import check_write_options, is_apply

TRIES = 5
"""So often is a write without a version done again when others come between."""

NAME_TRIES = 8
"""So many names are generated before the answer is that they are taken."""

Clock = Callable[[], datetime.datetime]
Warnings = tuple[str, ...]
Change = Callable[[Stored], Proposal]
"""From the current state to the wanted one; raises ApiError if it does not fit."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """The object after a write."""

    object: Object
    code: int = 200
    warnings: Warnings = ()


class Writes:
    """All writes but deletions."""

    def __init__(self, store: Store, admission: Admission, clock: Clock) -> None:
        self._store = store
        self._admission = admission
        self._clock = clock

    async def create(self, request: ResourceRequest) -> Written:
        """POST; raises ApiError."""
        check_write_options(request)
        return await self._created(request, new_object(request, self._now()))

    async def update(self, request: ResourceRequest) -> Written:
        """PUT; raises ApiError."""
        check_write_options(request)
        info = request.resource
        brought, warnings = new_object(request, self._now())
        check_place(request, brought)
        is_new = not self._store.find(info, request.namespace, request.name)
        if is_new and created_by_update(info) and not request.subresource:
            return await self._created(request, (brought, warnings))

        def replaced(current: Stored) -> Proposal:
            check_replaceable(info, brought, current)
            return brought, warnings

        return await self._changed(request, replaced)

    async def patch(self, request: ResourceRequest) -> Written:
        """PATCH, which creates if it is an apply; raises ApiError."""
        check_write_options(request)
        info = request.resource
        if is_apply(request) and not self._store.find(info, request.namespace, request.name):
            if request.subresource:
                raise not_found(info, request.name)
            return await self._created(request, new_object(request, self._now()))
        return await self._changed(
            request, lambda current: changed_object(request, current, self._now())
        )

    async def _created(self, request: ResourceRequest, proposal: Proposal) -> Written:
        for last in _tries(NAME_TRIES):
            try:
                return await self._created_once(request, *proposal)
            except ApiError as error:
                named = proposal[0].get("metadata", {}).get("name")
                if last or named or error.status.get("reason") != "AlreadyExists":
                    raise
        raise AssertionError("the last try returns or raises")

    async def _created_once(
        self, request: ResourceRequest, object_: Object, warnings: Warnings
    ) -> Written:
        info, now = request.resource, self._now()
        new = self._tracked(request, placed(request, object_), None)
        new, early = await self._mutated(request, new, None)
        new = born(request, new, uid=str(uuid.uuid4()), now=now, choose=random.choice)
        new = prepared_for_create(info, new)
        late = await self._admitted(request, new, None)
        check_named(info, new)
        if request.dry_run:
            self._refuse_taken(request, new["metadata"]["name"])
        else:
            new = self._store.create(info, new).object
        return Written(object=new, code=201, warnings=warnings + early + late)

    def _refuse_taken(self, request: ResourceRequest, name: str) -> None:
        """What storing would say of the name, without storing."""
        if self._store.find(request.resource, request.namespace, name):
            raise already_exists(request.resource, name)

    async def _changed(self, request: ResourceRequest, change: Change) -> Written:
        for last in _tries(TRIES):
            current = self._store.get(request.resource, request.namespace, request.name)
            try:
                return await self._changed_once(request, current, change)
            except ApiError as error:
                moved = self._store.find(request.resource, *current.key)
                unmoved = moved is not None and moved.version == current.version
                if last or unmoved or error.status.get("reason") != "Conflict":
                    raise
        raise AssertionError("the last try returns or raises")

    async def _changed_once(
        self, request: ResourceRequest, current: Stored, change: Change
    ) -> Written:
        info, old = request.resource, current.object
        wanted, warnings = change(current)
        new = self._tracked(request, succeeded(wanted, current), old)
        new, early = await self._mutated(request, new, old)
        new = prepared_for_update(info, succeeded(new, current), old, request.subresource)
        late = await self._admitted(request, new, old)
        if not request.dry_run:
            if goes_by_update(old, new):
                self._store.remove(info, current)
            else:
                new = self._store.replace(info, new, of=current).object
        return Written(object=new, warnings=warnings + early + late)

    async def _mutated(
        self, request: ResourceRequest, new: Object, old: Object | None
    ) -> tuple[Object, Warnings]:
        object_, warnings = await self._admission.mutated(request, new, old)
        return (new if object_ is None else object_), warnings

    async def _admitted(
        self, request: ResourceRequest, new: Object, old: Object | None
    ) -> Warnings:
        if errors := validated(request.resource, new, old, request.subresource):
            raise invalid(request.resource, new["metadata"].get("name", ""), errors)
        return await self._admission.validated(request, new, old)

    def _tracked(self, request: ResourceRequest, new: Object, old: Object | None) -> Object:
        """With its managedFields; what admission adds is nobody's, as on the real server."""
        if is_apply(request):
            return new
        return tracked(
            request.resource,
            new,
            old,
            manager=request.field_manager,
            operation="Update",
            subresource=request.subresource,
            now=self._now(),
        )

    def _now(self) -> str:
        return timestamp(self._clock())


def _tries(count: int) -> Iterator[bool]:
    """So many tries; true for the last."""
    return (number == count for number in range(1, count + 1))
