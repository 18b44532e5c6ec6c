"""Requests in the name of another user: `kubectl --as`.

Source: Kubernetes documentation, "User impersonation". Needs the verb `impersonate` on the user,
each group, the UID and each extra value; the finer verbs of KEP 5284 allow nothing here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote

from multidict import MultiMapping

from casaba.simulation.api_server.access import Access, Objects
from casaba.simulation.api_server.authentication import AUTHENTICATED
from casaba.simulation.api_server.authorization import refusal
from casaba.simulation.api_server.requests import ANONYMOUS, UserInfo
from casaba.simulation.api_server.statuses import ApiError, bad_request

_USER, _GROUP, _UID = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"


def impersonated(user: UserInfo, headers: MultiMapping[str], objects: Objects) -> UserInfo:
    """Who a request is to count as; the user himself if he names nobody else.

    Raises ApiError 400 for groups without a user, 403 if the user may not.
    """
    name, groups, uid = headers.get(_USER, ""), headers.getall(_GROUP, []), headers.get(_UID, "")
    extra = dict(_extra(headers))
    if not name:
        if groups or uid or extra:
            raise bad_request(f"{_GROUP}, {_UID} and Impersonate-Extra need {_USER} beside them")
        return user
    wanted = UserInfo(username=name, uid=uid, groups=tuple(groups), extra=extra)
    for access in _accesses(user, wanted):
        _check(access, objects)
    return _completed(wanted)


def _extra(headers: MultiMapping[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for header in dict.fromkeys(key.lower() for key in headers):
        if header.startswith(_EXTRA):
            yield unquote(header.removeprefix(_EXTRA)).lower(), tuple(headers.getall(header))


def _accesses(user: UserInfo, wanted: UserInfo) -> Iterator[Access]:
    """Everything that the user must be allowed to claim."""
    claim = Access(user=user, verb="impersonate", resource="users", name=wanted.username)
    namespace, _, account = wanted.username.removeprefix(_ACCOUNT).partition(":")
    if wanted.username.startswith(_ACCOUNT) and account:
        yield replace(claim, resource="serviceaccounts", namespace=namespace, name=account)
    else:
        yield claim
    for group in wanted.groups:
        yield replace(claim, resource="groups", name=group)
    claim = replace(claim, group=_AUTHENTICATION)
    if wanted.uid:
        yield replace(claim, resource="uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(claim, resource="userextras", subresource=key, name=value)


def _check(access: Access, objects: Objects) -> None:
    if (why := refusal(access, objects)) is None:
        return
    resource = f"{access.resource}.{access.group}" if access.group else access.resource
    details: Mapping[str, str] = {
        "name": access.name,
        "group": access.group,
        "kind": access.resource,
    }
    raise ApiError(
        403,
        "Forbidden",
        f'{resource} "{access.name}" is forbidden: {why}',
        details={key: value for key, value in details.items() if value},
    )


def _completed(wanted: UserInfo) -> UserInfo:
    """With the groups that the user would have after proving who it is."""
    groups = wanted.groups
    namespace, _, account = wanted.username.removeprefix(_ACCOUNT).partition(":")
    if wanted.username.startswith(_ACCOUNT) and account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    own = ANONYMOUS.groups[0] if wanted.username == ANONYMOUS.username else AUTHENTICATED
    groups = groups if own in groups else (*groups, own)
    return UserInfo(username=wanted.username, uid=wanted.uid, groups=groups, extra=wanted.extra)
