"""The way in to an API server, simulated or real: raw HTTP, so that nothing is smoothed over."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

Object = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_TIMEOUT_S = 20.0
_POLL_S = 0.05
_AGENT = "conformance/1.0"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The body; fails if it is not JSON."""
        return json.loads(self.text)

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers."""
        lines = [value for key, value in self.headers.items() if key.lower() == "warning"]
        return [line.partition('"')[2].rpartition('"')[0] for line in lines]

    def object(self, status: int = 200) -> Object:
        """The object of a success; fails with the server's words otherwise."""
        assert self.status == status, self.text
        told: Object = self.json
        return told

    def refused(self, code: int, reason: str) -> str:
        """The message of a refusal; fails if it is none, or another one."""
        assert self.status == code, self.text
        told = self.json
        assert (told["kind"], told["apiVersion"], told["status"]) == ("Status", "v1", "Failure")
        assert (told["code"], told.get("reason", "")) == (code, reason), self.text
        message: str = told.get("message", "")
        return message

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Reason and field of each cause of a refusal, sorted."""
        causes = self.json["details"].get("causes", [])
        return sorted((cause["reason"], cause.get("field", "")) for cause in causes)


async def later(ask: Callable[[], Awaitable[Answer]], status: int) -> Answer:
    """The first answer with a status; a real server learns of roles, pods and nodes by watches."""
    return await until(ask, lambda answer: answer.status == status)


async def until(ask: Callable[[], Awaitable[Answer]], fits: Callable[[Answer], bool]) -> Answer:
    """The first answer that fits."""
    for _ in range(int(_TIMEOUT_S / _POLL_S)):
        if fits(answer := await ask()):
            return answer
        await asyncio.sleep(_POLL_S)
    raise AssertionError(f"still {answer.status}: {answer.text}")


@dataclass(kw_only=True)
class Watching:
    """An open watch."""

    response: aiohttp.ClientResponse

    async def event(self, timeout_s: float = _TIMEOUT_S) -> tuple[str, Object]:
        """The next event: its type and object."""
        async with asyncio.timeout(timeout_s):
            line = await self.response.content.readline()
        assert line, "the watch has ended"
        told = json.loads(line)
        return told["type"], told["object"]

    async def named(self, timeout_s: float = _TIMEOUT_S) -> tuple[str, str]:
        """The next event, by type and the object's name; bookmarks are passed over."""
        while True:
            type_, object_ = await self.event(timeout_s)
            if type_ != "BOOKMARK":
                return type_, object_["metadata"]["name"]

    async def has_ended(self, timeout_s: float = _TIMEOUT_S) -> bool:
        """Whether nothing more comes."""
        async with asyncio.timeout(timeout_s):
            return not await self.response.content.readline()


@dataclass(frozen=True, kw_only=True)
class ApiDoor:
    """An identity's requests, and a namespace and prefix of names that are the test's own."""

    url: str
    session: aiohttp.ClientSession
    namespace: str
    prefix: str
    token: str = ""
    made: list[str] = field(default_factory=list)
    """Paths of cluster-wide objects to delete in the end."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; a text is sent as it is."""
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        sent = {**self._headers(accept), "Content-Type": content_type, **(headers or {})}
        async with self.session.request(
            method, self.url + path, data=_stream(text), headers=sent
        ) as response:
            told = (await response.read()).decode()
        answer = Answer(status=response.status, headers=response.headers.copy(), text=told)
        if method == "POST" and answer.status == 201 and "/namespaces/" not in path:
            self._remember(path, answer.json)
        return answer

    async def get(self, path: str, *, accept: str = "application/json") -> Answer:
        """GET."""
        return await self.call("GET", path, accept=accept)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        """POST."""
        return await self.call("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answer:
        """PUT."""
        return await self.call("PUT", path, body, **options)

    async def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> Answer:
        """PATCH."""
        return await self.call("PATCH", path, body, content_type=content_type)

    async def apply(self, path: str, body: Any) -> Answer:
        """Server-side apply."""
        return await self.patch(path, body, APPLY_PATCH)

    async def delete(self, path: str, options: Any = None) -> Answer:
        """DELETE, with options in the body."""
        return await self.call("DELETE", path, options)

    @asynccontextmanager
    async def watch(
        self, path: str, *, accept: str = "application/json"
    ) -> AsyncIterator[Watching]:
        """Open a watch that must be accepted; `path` has the query."""
        target = f"{self.url}{path}{'&' if '?' in path else '?'}watch=1"
        async with self.session.get(target, headers=self._headers(accept)) as response:
            assert response.status == 200, await response.text()
            yield Watching(response=response)

    def as_bearer(self, token: str, session: aiohttp.ClientSession) -> ApiDoor:
        """The same door for another identity; `session` must not hold a client certificate."""
        return ApiDoor(
            url=self.url,
            session=session,
            namespace=self.namespace,
            prefix=self.prefix,
            token=token,
        )

    def name(self, suffix: str) -> str:
        """A name that no other test uses, for cluster-wide objects."""
        return f"{self.prefix}-{suffix}"

    def core(self, plural: str, name: str = "") -> str:
        """The path of a resource of the core group in the test's namespace."""
        return f"/api/v1/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def named(self, group_version: str, plural: str, name: str = "") -> str:
        """The path of a resource of another group in the test's namespace."""
        path = f"/apis/{group_version}/namespaces/{self.namespace}/{plural}"
        return path + (f"/{name}" if name else "")

    def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": _AGENT}
        return {**headers, "Authorization": f"Bearer {self.token}"} if self.token else headers

    def _remember(self, path: str, told: Object) -> None:
        plain = path.partition("?")[0]
        if told.get("metadata", {}).get("name") and "dryRun" not in path:
            self.made.append(f"{plain}/{told['metadata']['name']}")


def _stream(text: str | None) -> io.BytesIO | None:
    """A body that aiohttp sends in pieces, however large."""
    return None if text is None else io.BytesIO(text.encode())


def connection(kubeconfig: Object, *, anonymous: bool = False) -> tuple[str, ssl.SSLContext]:
    """The server's address, and TLS with the client certificate of a kubeconfig, or without."""
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if not anonymous:
        _load(context, user["client-certificate-data"], user["client-key-data"])
    return cluster["server"], context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        certificate_file, key_file = Path(folder) / "certificate", Path(folder) / "key"
        certificate_file.write_bytes(base64.b64decode(certificate))
        key_file.write_bytes(base64.b64decode(key))
        context.load_cert_chain(certificate_file, key_file)


def session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    """A client session; nothing is followed or retried."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT_S, sock_read=_TIMEOUT_S),
        auto_decompress=True,
    )
