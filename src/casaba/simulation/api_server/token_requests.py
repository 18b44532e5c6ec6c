"""Tokens for service accounts, on request (TokenRequest, authentication.k8s.io/v1; KEP 1205)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.attributes import attributes_of
from casaba.simulation.api_server.node_restriction import check_node_user
from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.resources import find_resource
from casaba.simulation.api_server.statuses import ApiError, FieldError, bad_request, not_found
from casaba.simulation.api_server.times import written
from casaba.simulation.authority import ClusterAuthority
from casaba.simulation.service_account_tokens import DEFAULT_AUDIENCES, BoundObject

_DEFAULT_LIFETIME_S = 3600
_SHORTEST_LIFETIME_S = 600
_LONGEST_LIFETIME_S = 1 << 32
_GROUP = "authentication.k8s.io"
_BINDABLE = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


@dataclass(frozen=True, kw_only=True)
class _Binding:
    """What the token ends with, and where that is."""

    pod: BoundObject | None = None
    node: BoundObject | None = None
    secret: BoundObject | None = None


def requested_token(
    request: ResourceRequest,
    wanted: Object,
    *,
    authority: ClusterAuthority,
    objects: Objects,
    now_s: int,
) -> Object:
    """The TokenRequest with its token (201). Raises ApiError 400, 403, 404, 409 or 422."""
    check_node_user(attributes_of(request, wanted, None), objects)
    account = _account(request, objects)
    if errors := tuple(_errors(account.name, wanted)):
        raise _invalid(account.name, wanted, errors)
    spec = _completed(wanted.get("spec") or {})
    binding = _binding(request.namespace, spec["boundObjectRef"], objects)
    token = authority.tokens.token(
        request.namespace,
        account,
        pod=binding.pod,
        node=binding.node,
        secret=binding.secret,
        audiences=spec["audiences"],
        lifetime_s=spec["expirationSeconds"],
        now_s=now_s,
    )
    return _answer(request.namespace, account, spec, token, now_s)


def _account(request: ResourceRequest, objects: Objects) -> BoundObject:
    account = named(objects, "serviceaccounts", request.namespace, request.name)
    if account is None:
        raise not_found(request.resource, request.name)
    return BoundObject(name=request.name, uid=account["metadata"]["uid"])


def _completed(spec: Object) -> Object:
    return {
        "audiences": list(spec.get("audiences") or DEFAULT_AUDIENCES),
        "expirationSeconds": spec.get("expirationSeconds") or _DEFAULT_LIFETIME_S,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _answer(namespace: str, account: BoundObject, spec: Object, token: str, now_s: int) -> Object:
    ends_s = now_s + spec["expirationSeconds"]
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": account.name,
            "namespace": namespace,
            "uid": account.uid,
            "creationTimestamp": _time(now_s),
        },
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": _time(ends_s)},
    }


def _errors(account_name: str, wanted: Object) -> Iterator[FieldError]:
    name = (wanted.get("metadata") or {}).get("name") or account_name
    if name != account_name:
        message = f'Invalid value: "{name}": must match the service account name if specified'
        yield FieldError(field="metadata.name", message=message)
    lifetime_s = (wanted.get("spec") or {}).get("expirationSeconds") or _DEFAULT_LIFETIME_S
    if lifetime_s < _SHORTEST_LIFETIME_S:
        limit = "less than 10 minutes"
    elif lifetime_s > _LONGEST_LIFETIME_S:
        limit = "larger than 2^32 seconds"
    else:
        return
    message = f"Invalid value: {lifetime_s}: may not specify a duration {limit}"
    yield FieldError(field="spec.expirationSeconds", message=message)


def _invalid(account_name: str, wanted: Object, errors: tuple[FieldError, ...]) -> ApiError:
    # Only a request that has a name is refused by it.
    name = account_name if (wanted.get("metadata") or {}).get("name") else ""
    told = "; ".join(f"{error.field}: {error.message}" for error in errors)
    causes = [
        {"reason": error.reason, "message": error.message, "field": error.field} for error in errors
    ]
    details: Object = {"name": name} if name else {}
    return ApiError(
        422,
        "Invalid",
        f'TokenRequest.{_GROUP} "{name}" is invalid: {told}',
        details={**details, "group": _GROUP, "kind": "TokenRequest", "causes": causes},
    )


def _binding(namespace: str, reference: Object | None, objects: Objects) -> _Binding:
    """The object of a boundObjectRef, and a pod's node with it."""
    if reference is None:
        return _Binding()
    found = _referred(namespace, reference, objects)
    bound = BoundObject(name=found["metadata"]["name"], uid=found["metadata"]["uid"])
    match reference["kind"]:
        case "Pod":
            return _Binding(pod=bound, node=_node_of(found, objects))
        case "Node":
            return _Binding(node=bound)
        case _:
            return _Binding(secret=bound)


def _referred(namespace: str, reference: Object, objects: Objects) -> Object:
    """The object that a reference means. Raises ApiError 400, 404 or 409."""
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    plural = _BINDABLE.get(kind, "")
    info = find_resource("", "v1", plural)
    if info is None or reference.get("apiVersion") != "v1":
        version = (reference.get("apiVersion") or "").rpartition("/")
        group_version = "/".join((version[0], version[2]))
        raise bad_request(f"cannot bind token to object of type {group_version}, Kind={kind}")
    found = named(objects, plural, namespace if info.namespaced else "", name)
    if found is None:
        raise not_found(info, name)
    asked = reference.get("uid")
    if asked and asked != found["metadata"]["uid"]:
        raise _other_object(kind, name, asked)
    return found


def _other_object(kind: str, name: str, uid: str) -> ApiError:
    message = (
        f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference '
        f"({uid}) does not match the UID in record. The object might have been deleted and then "
        "recreated"
    )
    return ApiError(409, "Conflict", message, details={"name": name, "kind": kind})


def _node_of(pod: Object, objects: Objects) -> BoundObject | None:
    name = pod["spec"].get("nodeName")
    node = named(objects, "nodes", "", name) if name else None
    return BoundObject(name=name, uid=node["metadata"]["uid"]) if node else None


def _time(seconds: int) -> str:
    return written(datetime.fromtimestamp(seconds, UTC))
