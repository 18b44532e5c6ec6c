"""Admission: what a write goes through between permission and storage.

built-in checks and defaults ─► mutating webhooks ─► the caller's check ─► validating webhooks
"""

from casaba.simulation.api_server.access import Objects
from casaba.simulation.api_server.attributes import Attributes, attributes_of
from casaba.simulation.api_server.claim_admission import check_claim
from casaba.simulation.api_server.namespace_lifecycle import check_namespace
from casaba.simulation.api_server.node_restriction import check_node_user
from casaba.simulation.api_server.pod_admission import completed_pod, continued_pod
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.webhook_calls import ServiceAddresses
from casaba.simulation.api_server.webhooks import Webhooks


class Admission:
    """Built-in admission and webhooks of one server; `objects` are the cluster's of a plural."""

    def __init__(
        self, objects: Objects, *, service_addresses: ServiceAddresses | None = None
    ) -> None:
        self._objects = objects
        self._webhooks = Webhooks(objects, service_addresses or {})

    async def admitted(
        self,
        request: ResourceRequest,
        object_: Object | None,
        old: Object | None,
    ) -> tuple[Object | None, tuple[str, ...]]:
        """The object as it may be done, and warnings for the client, where nothing is prepared.

        `object_` is None for a deletion, `old` for a creation. Raises ApiError.
        """
        object_, warnings = await self.mutated(request, object_, old)
        more = await self.validated(request, object_, old)
        return object_, (*warnings, *more)

    async def mutated(
        self, request: ResourceRequest, object_: Object | None, old: Object | None
    ) -> tuple[Object | None, tuple[str, ...]]:
        """The object after everything that may change it, and warnings. Raises ApiError.

        The first half of `admitted`: on the real server it comes before the name is generated and
        the server's metadata is set.
        """
        attributes = attributes_of(request, object_, old)
        check_namespace(attributes, self._objects)
        check_node_user(attributes, self._objects)
        if _is_pod(attributes, "CREATE"):
            attributes = attributes.with_object(completed_pod(attributes, self._objects))
        elif _is_pod(attributes, "UPDATE"):
            attributes = attributes.with_object(continued_pod(attributes))
        attributes, warnings = await self._webhooks.mutated(attributes)
        return attributes.object, warnings

    async def validated(
        self, request: ResourceRequest, object_: Object | None, old: Object | None
    ) -> tuple[str, ...]:
        """The warnings of everything that may only say no, the second half. Raises ApiError."""
        attributes = attributes_of(request, object_, old)
        check_claim(attributes, self._objects)
        return await self._webhooks.checked(attributes)


def _is_pod(attributes: Attributes, operation: str) -> bool:
    request = attributes.request
    return (
        request.resource.plural == "pods"
        and not request.subresource
        and attributes.operation == operation
    )
