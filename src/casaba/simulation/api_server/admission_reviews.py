"""AdmissionReview (admission.k8s.io/v1): the question to a webhook, and its answer."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.reviews import user_info
from casaba.simulation.api_server.statuses import ApiError

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_LOWEST_REFUSAL = 400


class BadAnswer(Exception):
    """A webhook's answer that can't be used; the message goes behind the webhook's name."""


class Answer(msgspec.Struct, rename="camel", kw_only=True):
    """The response of a webhook."""

    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str = ""
    kind: str = ""
    response: Answer | None = None


def review_request(attributes: Attributes) -> Object:
    """The `request` of a review, with a new uid."""
    return {
        "uid": str(uuid.uuid4()),
        **_place(attributes),
        "operation": attributes.operation,
        "userInfo": user_info(attributes.request.user),
        "object": attributes.object,
        "oldObject": attributes.old,
        "dryRun": attributes.request.dry_run,
        "options": attributes.options,
    }


def _place(attributes: Attributes) -> Object:
    """What is written, as far as there is such a thing; this server converts no versions."""
    info, subresource = attributes.request.resource, attributes.request.subresource
    resource = {"group": info.group, "version": info.version, "resource": info.plural}
    place = {
        "kind": attributes.kind,
        "resource": resource,
        "subResource": subresource,
        "requestKind": attributes.kind,
        "requestResource": resource,
        "requestSubResource": subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    return {field: value for field, value in place.items() if value}


def read_answer(body: bytes, uid: str, *, may_patch: bool) -> Answer:
    """The answer in a webhook's response. Raises BadAnswer."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except msgspec.ValidationError as error:
        raise BadAnswer(f"failed to call webhook: the AdmissionReview is wrong: {error}") from None
    except msgspec.DecodeError as error:
        raise BadAnswer(
            f"failed to call webhook: couldn't get version/kind; json parse error: {error}"
        ) from None
    version, kind = review.api_version or API_VERSION, review.kind or KIND
    if (version, kind) != (API_VERSION, KIND):
        raise BadAnswer(
            f'failed to call webhook: no kind "{kind}" is registered for version "{version}"; '
            f'answer with a "{KIND}" of "{API_VERSION}"'
        )
    problem = next(_problems(review.response, uid, may_patch=may_patch), None)
    if problem is not None or review.response is None:
        raise BadAnswer(f"received invalid webhook response: {problem}")
    return review.response


def patch_operations(answer: Answer) -> list[Any]:
    """The operations of an answer's JSON patch. Raises BadAnswer."""
    if not answer.patch:
        return []
    try:
        operations = json.loads(answer.patch)
    except ValueError as error:
        raise BadAnswer(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(operations, list):
        raise BadAnswer("received undecodable patch in webhook response: it is not a JSON array")
    return operations


def refusal(hook_name: str, status: Object | None) -> ApiError:
    """What the client gets when a webhook says no; never less than a 400."""
    told = dict(status or {})
    code = told.get("code") or 0
    code = code if isinstance(code, int) and code >= _LOWEST_REFUSAL else _LOWEST_REFUSAL
    words = told.get("message") or told.get("reason")
    denied = f'admission webhook "{hook_name}" denied the request'
    message = f"{denied}: {words}" if words else f"{denied} without explanation"
    return ApiError(code, told.get("reason") or "", message, details=told.get("details") or None)


def internal_error(why: str) -> ApiError:
    """500, for what a webhook got wrong."""
    message = f"Internal error occurred: {why}"
    return ApiError(500, "InternalError", message, details={"causes": [{"message": why}]})


def _problems(answer: Answer | None, uid: str, *, may_patch: bool) -> Iterator[str]:
    if answer is None:
        yield "webhook response was absent"
        return
    if answer.uid != uid:
        yield f'expected response.uid="{uid}", got "{answer.uid}"'
    if not may_patch:
        if answer.patch:
            yield "validating webhook may not return response.patch"
        if answer.patch_type is not None:
            yield "validating webhook may not return response.patchType"
    elif answer.patch and answer.patch_type is None:
        yield "webhook returned response.patch but not response.patchType"
    elif answer.patch_type is not None and not answer.patch:
        yield "webhook returned response.patchType but not response.patch"
