"""What a request for a container's log asks for, and whether there is one. Pure.

The refusals are the kubelet's own words.
"""

from collections.abc import Mapping

from casaba.errors import InvalidInput
from casaba.simulation.kubelet.container_states import ContainerState, Waiting
from casaba.simulation.kubelet.logs import LogOptions, time_ns

_NS = 1_000_000_000
_STREAMS = {"Stdout": "stdout", "Stderr": "stderr"}


def log_options(query: Mapping[str, str], now_ns: int) -> LogOptions:
    """The options in a query; raises InvalidInput naming the one that makes no sense."""
    return LogOptions(
        follow=_flag(query, "follow"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=_number(query, "tailLines", least=0),
        since_ns=_since_ns(query, now_ns),
        limit_bytes=_number(query, "limitBytes", least=1),
        stream=_STREAMS.get(query.get("stream", ""), ""),
    )


def previous_wanted(query: Mapping[str, str]) -> bool:
    """Whether the log of the run before is wanted."""
    return _flag(query, "previous")


def check_has_log(pod: str, state: ContainerState, *, previous: bool) -> None:
    """Raises InvalidInput, which tells why, when there is no such log."""
    container = f'container "{state.name}" in pod "{pod}"'
    if previous:
        if state.last is None:
            raise InvalidInput(f"previous terminated {container} not found")
    elif isinstance(state.state, Waiting) and state.last is None:
        raise InvalidInput(f"{container} is waiting to start: {state.state.reason}")


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _number(query: Mapping[str, str], name: str, *, least: int) -> int | None:
    if (text := query.get(name)) is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise InvalidInput(f"{name}={text}: must be a number of at least {least}")
    return int(text)


def _since_ns(query: Mapping[str, str], now_ns: int) -> int:
    seconds = _number(query, "sinceSeconds", least=1)
    if seconds is not None:
        return now_ns - seconds * _NS
    if (text := query.get("sinceTime")) is None:
        return 0
    try:
        return time_ns(text)
    except ValueError as error:
        raise InvalidInput(f"sinceTime={text}: must be a time as 2026-01-31T12:00:00Z") from error
