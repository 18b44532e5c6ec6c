"""Admission webhooks: who is called, in which order, and what their answers do.

Mutating webhooks go one after the other by the names of their configurations, validating ones all
at once. Source: Kubernetes documentation, "Dynamic Admission Control".
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from casaba.simulation.api_server.access import Objects
from casaba.simulation.api_server.admission_reviews import (
    Answer,
    BadAnswer,
    internal_error,
    patch_operations,
    read_answer,
    refusal,
    review_request,
)
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.patches import JSON_PATCH, patched
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, bad_request
from casaba.simulation.api_server.strategy import object_of
from casaba.simulation.api_server.webhook_calls import ServiceAddresses, called
from casaba.simulation.api_server.webhook_matching import concerns, meets_conditions

_WITHOUT_SIDE_EFFECTS = ("None", "NoneOnDryRun")


@dataclass(kw_only=True)
class _Rounds:
    """Which webhooks are to be called again, because others changed the object after them."""

    again: set[int] = field(default_factory=set)
    called: set[int] = field(default_factory=set)
    """Called, want to be called again, and nothing has changed since."""

    def note(self, number: int, hook: Object, *, changed: bool) -> None:
        """A webhook has answered."""
        if changed:
            self.again |= self.called
            self.called.clear()
        if hook.get("reinvocationPolicy") == "IfNeeded":
            self.called.add(number)


class Webhooks:
    """Calls the webhooks that the cluster's configurations name."""

    def __init__(self, objects: Objects, service_addresses: ServiceAddresses) -> None:
        self._objects = objects
        self._addresses = service_addresses

    async def mutated(self, attributes: Attributes) -> tuple[Attributes, tuple[str, ...]]:
        """The write as webhooks changed it, and their warnings. Raises ApiError."""
        hooks = tuple(_hooks(self._objects("mutatingwebhookconfigurations")))
        warnings: list[str] = []
        rounds = _Rounds()
        for number, hook in enumerate(hooks):
            attributes = await self._one_mutated(number, hook, attributes, rounds, warnings)
        for number, hook in enumerate(hooks):
            if number in rounds.again:
                attributes = await self._one_mutated(number, hook, attributes, rounds, warnings)
        return attributes, tuple(warnings)

    async def checked(self, attributes: Attributes) -> tuple[str, ...]:
        """The warnings of the validating webhooks. Raises ApiError if one of them says no."""
        hooks = tuple(_hooks(self._objects("validatingwebhookconfigurations")))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one_checked(hook, attributes)) for hook in hooks]
        outcomes = [task.result() for task in tasks]
        warnings = tuple(text for told, _ in outcomes for text in told)
        for _, error in outcomes:
            if error is not None:
                error.warnings = warnings
                raise error
        return warnings

    async def _one_mutated(
        self,
        number: int,
        hook: Object,
        attributes: Attributes,
        rounds: _Rounds,
        warnings: list[str],
    ) -> Attributes:
        answer = await self._answer(hook, attributes, may_patch=True)
        if answer is None:
            return attributes
        warnings += _printable(answer.warnings or ())
        try:
            new = _after(hook, answer, attributes)
        except ApiError as error:
            error.warnings = tuple(warnings)
            raise
        rounds.note(number, hook, changed=new.object != attributes.object)
        return new

    async def _one_checked(
        self, hook: Object, attributes: Attributes
    ) -> tuple[tuple[str, ...], ApiError | None]:
        try:
            answer = await self._answer(hook, attributes, may_patch=False)
        except ApiError as error:
            return (), error
        if answer is None:
            return (), None
        told = tuple(_printable(answer.warnings or ()))
        return told, None if answer.allowed else refusal(hook["name"], answer.status)

    async def _answer(
        self, hook: Object, attributes: Attributes, *, may_patch: bool
    ) -> Answer | None:
        """What a webhook says, None if it is not asked or its failure does not count."""
        if not concerns(hook, attributes, self._objects):
            return None
        request = review_request(attributes)
        if not meets_conditions(hook, attributes, request):
            return None
        if request["dryRun"] and hook.get("sideEffects") not in _WITHOUT_SIDE_EFFECTS:
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        try:
            body = await called(hook, request, self._addresses)
            answer = read_answer(body, request["uid"], may_patch=may_patch)
            patch_operations(answer)
        except BadAnswer as failure:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise internal_error(f'failed calling webhook "{hook["name"]}": {failure}') from None
        return answer


def _hooks(configurations: Iterable[Object]) -> Iterator[Object]:
    for configuration in sorted(configurations, key=lambda each: str(each["metadata"]["name"])):
        yield from configuration.get("webhooks") or ()


def _after(hook: Object, answer: Answer, attributes: Attributes) -> Attributes:
    """The write with a webhook's patch. Raises ApiError if it says no, or its patch is no use."""
    if not answer.allowed:
        raise refusal(hook["name"], answer.status)
    operations = patch_operations(answer)
    if not operations:
        return attributes
    if attributes.object is None:
        raise internal_error(
            f'admission webhook "{hook["name"]}" attempted to modify the object, which is not '
            "supported for this operation"
        )
    if answer.patch_type != "JSONPatch":
        raise internal_error(f'admission webhook "{hook["name"]}": unsupported patch type')
    info = _info_of_kind(attributes)
    body = json.dumps(operations).encode()
    try:
        new = patched(info, attributes.object, JSON_PATCH, body)
        if info is attributes.request.resource:
            new, _ = object_of(info, new, "Ignore")
    except ApiError as error:
        raise internal_error(str(error)) from None
    return attributes.with_object(new)


def _info_of_kind(attributes: Attributes) -> ResourceInfo:
    """The resource, with another kind where a subresource takes objects of its own kind."""
    kind, info = attributes.kind, attributes.request.resource
    if kind["kind"] == info.kind:
        return info
    return replace(info, **kind)


def _printable(warnings: Sequence[str]) -> Iterator[str]:
    """Warnings become headers; those with control characters can't."""
    return (text for text in warnings if text.isprintable())
