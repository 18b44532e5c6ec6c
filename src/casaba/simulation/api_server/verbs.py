"""What each verb does: the one door to the store for requests that may do what they ask."""

from collections.abc import Awaitable, Callable, Mapping

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.deletions import Deletions
from casaba.simulation.api_server.list_options import number_of, version_too_large
from casaba.simulation.api_server.listing import Page, page
from casaba.simulation.api_server.pods import Pods
from casaba.simulation.api_server.questions import Questions
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.reviews import REVIEWS
from casaba.simulation.api_server.statuses import bad_request, method_not_allowed
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.writes import Clock, Writes, Written

Verb = Callable[[ResourceRequest], Awaitable[Written]]


class Verbs:
    """All verbs but watch, which is no single answer, and the log of a pod, which is no object."""

    def __init__(
        self, store: Store, admission: Admission, questions: Questions, clock: Clock
    ) -> None:
        self._store = store
        self._questions = questions
        writes = Writes(store, admission, clock)
        self._deletions = Deletions(store, admission, clock)
        pods = Pods(store, admission, self._deletions, clock)
        self._verbs: Mapping[tuple[str, str], Verb] = {
            ("get", ""): self._get,
            ("get", "status"): self._get,
            ("create", ""): writes.create,
            ("update", ""): writes.update,
            ("update", "status"): writes.update,
            ("update", "finalize"): writes.update,
            ("patch", ""): writes.patch,
            ("patch", "status"): writes.patch,
            ("delete", ""): self._deletions.delete,
            ("create", "binding"): pods.bind,
            ("create", "eviction"): pods.evict,
            ("create", "token"): questions.token,
        }

    async def done(self, request: ResourceRequest) -> Written | Page:
        """Do what is asked; raises ApiError."""
        if request.verb == "list":
            return page(self._store, request)
        if request.verb == "deletecollection":
            return await self._deletions.delete_collection(request)
        if request.resource.plural in REVIEWS:
            return await self._questions.review(request)
        verb = self._verbs.get((request.verb, request.subresource))
        if verb is None:
            raise method_not_allowed()
        return await verb(request)

    async def _get(self, request: ResourceRequest) -> Written:
        try:
            version = number_of(request.query.get("resourceVersion", ""))
        except ValueError as error:
            raise bad_request(f"invalid resource version: {error}") from None
        if version > self._store.version:
            raise version_too_large(version, self._store.version)
        found = self._store.get(request.resource, request.namespace, request.name)
        return Written(object=found.object)
