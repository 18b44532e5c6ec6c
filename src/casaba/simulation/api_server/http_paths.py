"""Paths that are no resources: health, version, discovery and OpenAPI."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from casaba.simulation.api_server.discovery import AGGREGATED_TYPE, discovery_document
from casaba.simulation.api_server.http_answers import JSON, json_answer, text_answer
from casaba.simulation.api_server.openapi import openapi_document

_HEALTH = ("/healthz", "/livez", "/readyz")


def path_answer(
    path: str, headers: Mapping[str, str], query: Mapping[str, str]
) -> web.Response | None:
    """The answer to a path, None if there is nothing; raises ApiError 406."""
    if health := _health(path, query):
        return health
    document = discovery_document(path, headers.get("Accept", ""))
    if document is not None:
        aggregated = document["kind"] == "APIGroupDiscoveryList" if "kind" in document else False
        content_type = AGGREGATED_TYPE if aggregated else JSON
        response = json_answer(msgspec.json.encode(document), content_type=content_type)
        response.headers["Vary"] = "Accept"
        return response
    described = openapi_document(path, headers.get("Accept", ""))
    return None if described is None else json_answer(described)


def _health(path: str, query: Mapping[str, str]) -> web.Response | None:
    name = next((name for name in _HEALTH if path in (name, f"{name}/ping")), None)
    if name is None:
        return None
    if "verbose" in query:
        return text_answer(f"[+]ping ok\n{name[1:]} check passed\n")
    return text_answer("ok")
