"""What lists and watches can be asked for by query parameters, and which combinations are wrong.

Source: Kubernetes API concepts, "The resourceVersion Parameter", and KEP-3157 (watch-list).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError, FieldError, bad_request, invalid

TOO_LARGE_RETRY_S = 1

_LIST_OPTIONS = ResourceInfo(
    group="meta.k8s.io", plural="listoptions", kind="ListOptions", namespaced=False
)
_MATCH = "resourceVersionMatch"


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """meta.k8s.io/v1 ListOptions without the selectors."""

    watch: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: float | None = None


def list_options(query: Mapping[str, str]) -> ListOptions:
    """The options of a query; raises ApiError 400 for what can't be read, 422 for nonsense."""
    options = ListOptions(
        watch=flag(query, "watch") or False,
        version=query.get("resourceVersion", ""),
        match=query.get(_MATCH, ""),
        limit=_number(query, "limit") or 0,
        continue_token=query.get("continue", ""),
        bookmarks=flag(query, "allowWatchBookmarks") or False,
        initial_events=flag(query, "sendInitialEvents"),
        timeout_s=_number(query, "timeoutSeconds"),
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if found := tuple(errors):
        raise invalid(_LIST_OPTIONS, "", found)
    return options


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """A boolean as the real server reads it: everything but false and 0 is true."""
    text = query.get(name)
    if text is None:
        return None
    return text.lower() not in ("false", "0")


def number_of(version: str) -> int:
    """A resourceVersion as a number, 0 if empty; raises ValueError with the server's words."""
    if not version:
        return 0
    if not (version.isascii() and version.isdecimal()):
        raise ValueError(
            f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: '
            f'parsing "{version}": invalid syntax'
        )
    return int(version)


def version_too_large(version: int, current: int) -> ApiError:
    """504: a version that no write has made yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        details={"causes": [cause]},
        retry_after_s=TOO_LARGE_RETRY_S,
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _forbidden(field: str, why: str) -> FieldError:
    return FieldError(field=field, message=f"Forbidden: {why}", reason="FieldValueForbidden")


def _unsupported_match(value: str, supported: str) -> FieldError:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return FieldError(field=_MATCH, message=message, reason="FieldValueNotSupported")


def _list_errors(options: ListOptions) -> Iterator[FieldError]:
    if options.initial_events is not None:
        yield _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if not options.match:
        return
    if not options.version:
        yield _forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
    if options.continue_token:
        yield _forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if options.match not in ("Exact", "NotOlderThan"):
        yield _unsupported_match(options.match, '"Exact", "NotOlderThan", ""')
    if options.match == "Exact" and options.version == "0":
        yield _forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')


def _watch_errors(options: ListOptions) -> Iterator[FieldError]:
    if options.initial_events is None:
        if options.match:
            why = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            yield _forbidden(_MATCH, why)
        return
    if options.match != "NotOlderThan":
        yield _forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan")
        if options.match:
            yield _unsupported_match(options.match, '"NotOlderThan"')
