"""Reviews: questions that are posed by creating an object, which nobody stores.

Kinds: TokenReview, SelfSubjectReview (authentication.k8s.io/v1), SubjectAccessReview,
SelfSubjectAccessReview and SelfSubjectRulesReview (authorization.k8s.io/v1).
"""

import time
from datetime import UTC, datetime

from casaba.simulation.api_server.access import Access, Objects
from casaba.simulation.api_server.authentication import Authenticator, TokenRefused
from casaba.simulation.api_server.authorization import decided
from casaba.simulation.api_server.requests import Object, ResourceRequest, UserInfo
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.rules_review import rules_status
from casaba.simulation.api_server.statuses import ApiError, bad_request
from casaba.simulation.api_server.times import written

REVIEWS = frozenset(
    {
        "tokenreviews",
        "selfsubjectreviews",
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
    }
)


async def reviewed(
    request: ResourceRequest, review: Object, *, authenticator: Authenticator, objects: Objects
) -> Object:
    """The answer to a review, as the client gets it (201). Raises ApiError 400 or 422."""
    metadata = dict(review.get("metadata") or {})
    if request.resource.plural == "selfsubjectreviews":
        metadata["creationTimestamp"] = written(datetime.fromtimestamp(time.time(), UTC))
    info = request.resource
    answer = {"kind": info.kind, "apiVersion": info.api_version, "metadata": metadata}
    spec = review.get("spec") or {}
    match info.plural:
        case "tokenreviews":
            return {**answer, "spec": spec, "status": _token_status(spec, authenticator)}
        case "selfsubjectreviews":
            return {**answer, "status": {"userInfo": user_info(request.user)}}
        case "selfsubjectrulesreviews":
            status = rules_status(request.user, spec.get("namespace") or "", objects)
            return {**answer, "spec": {}, "status": status}
        case "selfsubjectaccessreviews":
            access = _access(info, request.user, spec)
        case _:
            access = _access(info, _subject(info, spec), spec)
    decision = decided(access, objects)
    reason = {"reason": decision.reason} if decision.reason else {}
    return {**answer, "spec": spec, "status": {"allowed": decision.allowed, **reason}}


def user_info(user: UserInfo) -> Object:
    """A user as objects of the API hold it."""
    told: Object = {"username": user.username}
    if user.uid:
        told["uid"] = user.uid
    if user.groups:
        told["groups"] = list(user.groups)
    if user.extra:
        told["extra"] = {key: list(values) for key, values in user.extra.items()}
    return told


def _token_status(spec: Object, authenticator: Authenticator) -> Object:
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    try:
        owner = authenticator.token_owner(token, spec.get("audiences") or ())
    except TokenRefused as refusal:
        return {"user": {}, "error": str(refusal)}
    user = user_info(owner.user)
    return {"authenticated": True, "user": user, "audiences": list(owner.audiences)}


def _subject(info: ResourceInfo, spec: Object) -> UserInfo:
    if not (spec.get("user") or spec.get("groups")):
        raise _invalid(
            info, "spec.user", 'Invalid value: "": at least one of user or group must be specified'
        )
    return UserInfo(username=spec.get("user") or "", groups=tuple(spec.get("groups") or ()))


def _access(info: ResourceInfo, user: UserInfo, spec: Object) -> Access:
    """What a review asks about. Raises ApiError 422 if that is not one thing."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        told = f'{{"Path":"{path.get("path", "")}","Verb":"{path.get("verb", "")}"}}'
        message = f"Invalid value: {told}: cannot be specified in combination with "
        raise _invalid(info, "spec.nonResourceAttributes", f"{message}resourceAttributes")
    if path is not None:
        return Access(user=user, verb=path.get("verb") or "", path=path.get("path") or "/")
    if resource is None:
        message = "Invalid value: null: exactly one of nonResourceAttributes or "
        message += "resourceAttributes must be specified"
        raise _invalid(info, "spec.resourceAttributes", message)
    return _resource_access(user, resource)


def _resource_access(user: UserInfo, resource: Object) -> Access:
    return Access(
        user=user,
        verb=resource.get("verb") or "",
        group=resource.get("group") or "",
        resource=resource.get("resource") or "",
        subresource=resource.get("subresource") or "",
        namespace=resource.get("namespace") or "",
        name=resource.get("name") or "",
    )


def _invalid(info: ResourceInfo, field: str, message: str) -> ApiError:
    """Reviews have no kind in the real server's refusals, which looks odd but is so."""
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    text = f'.{info.group} "" is invalid: {field}: {message}'
    return ApiError(422, "Invalid", text, details={"group": info.group, "causes": causes})
