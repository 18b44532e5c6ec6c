"""DELETE of one object and of a collection: from the request to the store."""

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.delete_options import DeleteOptions, delete_options
from casaba.simulation.api_server.deletion import Deletion, deletion
from casaba.simulation.api_server.kind_rules import shown_when_deleted
from casaba.simulation.api_server.listing import Page, page
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.watch_log import Stored
from casaba.simulation.api_server.writes import Clock, Written


class Deletions:
    """What is asked to go."""

    def __init__(self, store: Store, admission: Admission, clock: Clock) -> None:
        self._store = store
        self._admission = admission
        self._clock = clock

    async def delete(self, request: ResourceRequest) -> Written:
        """One object: it, or a Status if nothing is left of it; raises ApiError."""
        options = delete_options(request)
        current = self._store.get(request.resource, request.namespace, request.name)
        _, warnings = await self._admission.admitted(request, None, current.object)
        return self.delete_admitted(request, options, warnings)

    def delete_admitted(
        self, request: ResourceRequest, options: DeleteOptions, warnings: tuple[str, ...]
    ) -> Written:
        """As `delete`, when admission has been heard already."""
        current = self._store.get(request.resource, request.namespace, request.name)
        asked = self._deleted(request, current, options)
        shown = not asked.goes or shown_when_deleted(request.resource)
        return Written(
            object=asked.object if shown else _success(request, asked.object), warnings=warnings
        )

    async def delete_collection(self, request: ResourceRequest) -> Page:
        """All objects that the selectors choose; those that were there are the answer."""
        options = delete_options(request)
        chosen = page(self._store, request)
        for found in chosen.items:
            await self._admission.admitted(request, None, found.object)
            current = self._store.find(request.resource, *found.key)
            if current is not None:
                self._deleted(request, current, options)
        return chosen

    def _deleted(
        self, request: ResourceRequest, current: Stored, options: DeleteOptions
    ) -> Deletion:
        info = request.resource
        asked = deletion(info, current.object, options, self._clock())
        if options.dry_run or request.dry_run:
            return asked
        marked = self._store.replace(info, asked.object, of=current)
        if asked.goes:
            self._store.remove(info, marked)
        return Deletion(object=marked.object, goes=asked.goes)


def _success(request: ResourceRequest, object_: Object) -> Object:
    info, metadata = request.resource, object_["metadata"]
    details = {"name": metadata["name"], "kind": info.plural, "uid": metadata["uid"]}
    if info.group:
        details["group"] = info.group
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
