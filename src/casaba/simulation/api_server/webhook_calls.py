"""The HTTPS call to a webhook, and what went wrong with it in the real server's words."""

import asyncio
import base64
import binascii
import functools
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from casaba.simulation.api_server.admission_reviews import API_VERSION, KIND, BadAnswer
from casaba.simulation.api_server.requests import Object

ServiceAddresses = Mapping[tuple[str, str], tuple[str, int]]
"""Namespace and name of a Service, to the host and port where it is: there are no Services here."""

DEFAULT_TIMEOUT_S = 10
ANSWER_BYTES = 4 << 20
_CHUNK_BYTES = 64 << 10
_CONTEXTS = 64
_NOT_TRUSTED = frozenset({18, 19, 20, 21})
_OTHER_NAME = frozenset({62, 64})
_WORDS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}


@dataclass(frozen=True, kw_only=True)
class _Target:
    """Where a webhook is."""

    shown: URL
    """The address in messages, with the time limit as the webhook gets it."""
    called: URL
    name: str
    """The name that its certificate must have."""


async def called(hook: Object, request: Object, addresses: ServiceAddresses) -> bytes:
    """The body of a webhook's answer. Raises BadAnswer."""
    config = hook["clientConfig"]
    timeout_s = hook.get("timeoutSeconds") or DEFAULT_TIMEOUT_S
    target = _target(config, timeout_s, addresses)
    context = _context(config.get("caBundle") or "")
    try:
        async with asyncio.timeout(timeout_s):
            return await _posted(target, context, request)
    except TimeoutError:
        raise _failed(target, "context deadline exceeded") from None
    except aiohttp.ClientError as error:
        raise _failed(target, _words(error, target)) from None


def _target(config: Object, timeout_s: int, addresses: ServiceAddresses) -> _Target:
    if (service := config.get("service")) is not None:
        return _service_target(service, timeout_s, addresses)
    url = config.get("url") or ""
    try:
        shown = URL(url).update_query(timeout=f"{timeout_s}s")
    except ValueError as error:
        raise BadAnswer(f"could not get REST client: parse {url!r}: {error}") from None
    if shown.scheme != "https" or not shown.host:
        raise BadAnswer(f"could not get REST client: webhook URL {url!r} is not https")
    return _Target(shown=shown, called=shown, name=shown.host)


def _service_target(service: Object, timeout_s: int, addresses: ServiceAddresses) -> _Target:
    namespace, name = service["namespace"], service["name"]
    host, path = f"{name}.{namespace}.svc", service.get("path") or "/"
    told = f"https://{host}:{service.get('port') or 443}{path}?timeout={timeout_s}s"
    if (address := addresses.get((namespace, name))) is None:
        raise BadAnswer(f'failed to call webhook: Post "{told}": service "{name}" not found')
    shown = URL(told)
    called_at = shown.with_host(address[0]).with_port(address[1])
    return _Target(shown=shown, called=called_at, name=host)


@functools.lru_cache(_CONTEXTS)
def _context(bundle: str) -> ssl.SSLContext:
    """TLS that trusts a base64 bundle of PEM certificates, or the system's if that is empty."""
    if not bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
    except (ssl.SSLError, ValueError, binascii.Error) as error:
        raise BadAnswer(
            f"could not get REST client: unable to load root certificates: {error}"
        ) from None
    return context


async def _posted(target: _Target, context: ssl.SSLContext, request: Object) -> bytes:
    # A connection of its own for each call: no state that a restarted webhook could break.
    connector = aiohttp.TCPConnector(force_close=True)
    review = {"kind": KIND, "apiVersion": API_VERSION, "request": request}
    headers = {"Accept": "application/json, */*", "User-Agent": "kube-apiserver-admission"}
    async with (
        aiohttp.ClientSession(
            connector=connector,
            headers=headers | {"Host": target.shown.authority},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session,
        session.post(
            target.called,
            json=review,
            ssl=context,
            server_hostname=target.name,
            allow_redirects=False,
        ) as response,
    ):
        body = await _limited(response)
        if not response.ok or response.status >= 300:
            raise BadAnswer(f"failed to call webhook: {_status_words(response.status, body)}")
        return body


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > ANSWER_BYTES:
            raise BadAnswer(f"failed to call webhook: the answer is over {ANSWER_BYTES} bytes")
    return bytes(body)


def _status_words(code: int, body: bytes) -> str:
    if words := _WORDS.get(code):
        return words
    if code >= 500:
        told = body.decode("utf-8", "replace") or "unknown"
        return f'an error on the server ("{told}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"


def _failed(target: _Target, why: str) -> BadAnswer:
    return BadAnswer(f'failed to call webhook: Post "{target.shown}": {why}')


def _words(error: aiohttp.ClientError, target: _Target) -> str:
    where = f"{target.called.host}:{target.called.port}"
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"tls: failed to verify certificate: x509: {_distrust(error, target)}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {target.called.host}: no such host"
        case aiohttp.ClientSSLError():
            return f"tls: {error.os_error.strerror or error}"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {where}: connect: connection refused"
        case aiohttp.ClientConnectorError():
            return f"dial tcp {where}: {error.os_error}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
    return str(error) or type(error).__name__


def _distrust(error: aiohttp.ClientConnectorCertificateError, target: _Target) -> str:
    reason = error.certificate_error
    code = getattr(reason, "verify_code", 0)
    if code in _NOT_TRUSTED:
        return "certificate signed by unknown authority"
    if code in _OTHER_NAME:
        return f"certificate is not valid for {target.name}"
    return str(getattr(reason, "verify_message", reason))
