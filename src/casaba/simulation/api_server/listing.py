"""Lists: which version is asked for, and pages of one consistent state. Pure but for the store.

A continue token holds the version of the list and the last key of the page, so the pages of a
list are all of one state, whatever is written meanwhile.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from casaba.simulation.api_server.list_options import (
    ListOptions,
    list_options,
    number_of,
    version_too_large,
)
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.selection import Selection, selection
from casaba.simulation.api_server.statuses import ApiError, bad_request, expired
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.watch_log import Key, Stored

_TOKEN_KIND = "meta.k8s.io/v1"
_LATEST = -1
"""As the version of a token: go on with what is there now, consistent or not."""

_TOKEN_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this "
    "response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between "
    "the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some objects of a list, and how to get the rest."""

    items: Sequence[Stored]
    version: int
    continue_token: str = ""
    remaining: int | None = None
    """Unknown where a selector chooses, as on the real server."""


def page(store: Store, request: ResourceRequest) -> Page:
    """What a list request gets; raises ApiError."""
    options, chosen = list_options(request.query), selection(request)
    if options.continue_token:
        return _next_page(store, request.resource, options, chosen)
    version = _list_version(options)
    if version > store.version:
        raise version_too_large(version, store.version)
    # The real one's cache answers "any version", and knows no pages.
    limit = 0 if options.version == "0" else options.limit
    if version and (options.match == "Exact" or (limit and not options.match)):
        items = chosen.of(_as_of(store, request.resource, version))
        return _cut(items, version, limit, chosen)
    return _cut(chosen.of(store.all(request.resource)), store.version, limit, chosen)


def _list_version(options: ListOptions) -> int:
    try:
        return number_of(options.version)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from None


def _as_of(store: Store, info: ResourceInfo, version: int) -> list[Stored]:
    try:
        return list(store.as_of(info, version))
    except ApiError:
        raise expired("The resourceVersion for the provided list is too old.") from None


def _next_page(store: Store, info: ResourceInfo, options: ListOptions, chosen: Selection) -> Page:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    version, after = _read_token(options.continue_token)
    if version == _LATEST:
        version = store.version
    try:
        state = list(store.as_of(info, version))
    except ApiError:
        raise _token_expired(after) from None
    items = [found for found in chosen.of(state) if found.key > after]
    return _cut(items, version, options.limit, chosen)


def _cut(items: list[Stored], version: int, limit: int, chosen: Selection) -> Page:
    whole = Page(items=items, version=version)
    if not 0 < limit < len(items):
        return whole
    token = _token(version, items[limit - 1].key)
    remaining = None if chosen.labels or chosen.fields else len(items) - limit
    return replace(whole, items=items[:limit], continue_token=token, remaining=remaining)


def _token(version: int, after: Key) -> str:
    content = {"v": _TOKEN_KIND, "rv": version, "start": "/".join(after) + "\0"}
    text = json.dumps(content, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        padded = token + "=" * (-len(token) % 4)
        content: Any = json.loads(base64.urlsafe_b64decode(padded))
        version, start = int(content["rv"]), str(content["start"])
        namespace, _, name = start.rstrip("\0").partition("/")
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    return version, Key(namespace, name)


def _token_expired(after: Key) -> ApiError:
    error = expired(_TOKEN_EXPIRED)
    error.status["metadata"] = {"continue": _token(_LATEST, after)}
    return error
