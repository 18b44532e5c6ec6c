"""Answers as aiohttp sends them."""

from collections.abc import Iterable, Mapping

import msgspec
from aiohttp import web

from casaba.simulation.api_server.forms import Form, list_json, one_json
from casaba.simulation.api_server.listing import Page
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.writes import Written

JSON = "application/json"
HEADERS: Mapping[str, str] = {
    "Server": "casaba-simulated-apiserver",
    "Cache-Control": "no-cache, private",
}
_WARNING_CHARACTERS = 4096


def answer(wanted: Form, info: ResourceInfo, done: Written | Page) -> web.Response:
    """The result of a verb."""
    if isinstance(done, Page):
        return json_answer(list_json(wanted, info, done))
    if done.object.get("kind") == info.kind:
        body = one_json(wanted, info, done.object)
    else:
        body = msgspec.json.encode(done.object)
    response = json_answer(body, code=done.code)
    _warn(response, done.warnings)
    return response


def _warn(response: web.Response, warnings: Iterable[str]) -> None:
    for warning in dict.fromkeys(warnings):
        response.headers.add("Warning", warning_value(warning))


def json_answer(body: bytes, *, code: int = 200, content_type: str = JSON) -> web.Response:
    """Some JSON."""
    return web.Response(body=body, status=code, headers={**HEADERS, "Content-Type": content_type})


def document(content: Object) -> web.Response:
    """An object that is no resource."""
    return json_answer(msgspec.json.encode(content))


def text_answer(text: str, *, code: int = 200) -> web.Response:
    """Some text."""
    return web.Response(text=text, status=code, headers=HEADERS)


def refusal(error: ApiError) -> web.Response:
    """The Status of an error."""
    response = json_answer(msgspec.json.encode(error.status), code=error.code)
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    _warn(response, error.warnings)
    return response


def warning_value(text: str) -> str:
    """A Warning header (RFC 7234, 5.5): code 299, no agent."""
    shown = "".join(char for char in text if char.isprintable())[:_WARNING_CHARACTERS]
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
