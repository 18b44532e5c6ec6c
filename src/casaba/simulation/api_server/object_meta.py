"""The part of an object's metadata that is the server's: who it is, since when, which version.

Pure; random names and times are given by the caller.
"""

from collections.abc import Callable

from casaba.simulation.api_server.kind_rules import update_needs_version
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import (
    ApiError,
    FieldError,
    bad_request,
    conflict,
    invalid,
)
from casaba.simulation.api_server.store import MODIFIED_SINCE
from casaba.simulation.api_server.watch_log import Stored

_GENERATED_PREFIX_CHARACTERS = 58
_SUFFIX_CHARACTERS = 5
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and look-alikes, so that no words come out."""

_NEVER_GIVEN = (
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
)


def born(
    request: ResourceRequest, object_: Object, *, uid: str, now: str, choose: Callable[[str], str]
) -> Object:
    """A new object with its name, namespace, UID and time; raises ApiError 400, 409 and 500."""
    metadata = dict(object_.get("metadata") or {})
    if metadata.get("resourceVersion") and request.verb == "create":
        # The real one has no better status for this either.
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    check_place(request, object_)
    if metadata.get("uid") and request.verb == "patch":
        raise conflict(
            request.resource,
            request.name,
            f"uid mismatch: the provided object specified uid {metadata['uid']}, "
            "and no existing object was found",
        )
    for field in _NEVER_GIVEN:
        metadata.pop(field, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], choose)
    if request.namespace:
        metadata["namespace"] = request.namespace
    return {**object_, "metadata": {**metadata, "uid": uid, "creationTimestamp": now}}


def placed(request: ResourceRequest, object_: Object) -> Object:
    """An object with the namespace of its URL; raises ApiError 400 if it names another place."""
    check_place(request, object_)
    metadata = dict(object_.get("metadata") or {})
    if request.namespace:
        metadata["namespace"] = request.namespace
    return {**object_, "metadata": metadata}


def generated_name(prefix: str, choose: Callable[[str], str]) -> str:
    """A name with a random end; `choose` takes one letter of an alphabet."""
    suffix = "".join(choose(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_CHARACTERS))
    return prefix[:_GENERATED_PREFIX_CHARACTERS] + suffix


def check_named(info: ResourceInfo, object_: Object) -> None:
    """Whatever a kind's own rules say: nothing is stored without a name. Raises ApiError 422."""
    if not object_["metadata"].get("name"):
        message = "Required value: name or generateName is required"
        error = FieldError(field="metadata.name", message=message, reason="FieldValueRequired")
        raise invalid(info, "", (error,))


def check_place(request: ResourceRequest, object_: Object) -> None:
    """The body must not contradict the URL; raises ApiError 400."""
    metadata = object_.get("metadata") or {}
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    if namespace and namespace != request.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not request.name:
        return
    if not name:
        raise bad_request(
            f"the name of the object ({request.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != request.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        )


def succeeded(object_: Object, current: Stored) -> Object:
    """The next state of an object: what is the server's comes from the current one."""
    metadata, known = dict(object_.get("metadata") or {}), current.object["metadata"]
    metadata.pop("selfLink", None)
    for field in ("namespace", "uid", "creationTimestamp"):
        if not metadata.get(field) and field in known:
            metadata[field] = known[field]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"):
        metadata.pop(field, None)
        if field in known:
            metadata[field] = known[field]
    # The time of birth is nobody's to change, and the real one does not even complain.
    metadata["creationTimestamp"] = known["creationTimestamp"]
    return {**object_, "metadata": metadata}


def check_version(info: ResourceInfo, object_: Object, current: Stored) -> None:
    """The state that a write is based on must be the latest; raises ApiError 409."""
    version = object_.get("metadata", {}).get("resourceVersion")
    if version and version != str(current.version):
        if not version.isdecimal():
            raise ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise conflict(info, current.key.name, MODIFIED_SINCE)


def check_replaceable(info: ResourceInfo, object_: Object, current: Stored) -> None:
    """What a PUT must get right about what it replaces; raises ApiError 409 and 422."""
    metadata = object_.get("metadata") or {}
    uid, known = metadata.get("uid"), current.object["metadata"]["uid"]
    if uid and uid != known:
        place = "/".join(filter(None, current.key))
        raise conflict(
            info,
            current.key.name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{info.plural}/{place}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {uid}, UID in object meta: {known}",
        )
    if not metadata.get("resourceVersion") and update_needs_version(info):
        raise _version_missing(info, current.key.name)
    check_version(info, object_, current)


def _version_missing(info: ResourceInfo, name: str) -> ApiError:
    field, message = "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": field}
    details: Object = {"name": name, "kind": info.plural, "causes": [cause]}
    if info.group:
        details["group"] = info.group
    text = f'{info.qualified} "{name}" is invalid: {field}: {message}'
    return ApiError(422, "Invalid", text, details=details)
