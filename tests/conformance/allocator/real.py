"""The real kube-scheduler as the other side of the comparison.

Nodes are objects without a kubelet; pods are pinned to one by its label and tolerate all. Cases
run side by side in one namespace, every name of theirs with a word of its own in it. A sentinel
pod, which can only be scheduled when the scheduler knows all that was made before it, keeps the
pods from being looked at too early.
"""

import asyncio
import base64
import json
import secrets
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from tests.conformance.allocator import ours
from tests.conformance.allocator.building import (
    NODE_LABEL,
    UNIVERSE,
    Json,
    claim,
    device,
    exactly,
    gpu_class,
    held,
    holder,
    node_name,
    slice_,
)
from tests.conformance.allocator.case import Case, Denied, Failed, Given, Outcome

BATCH = 40
"""Cases side by side."""
_DECIDED_TIMEOUT_S = 60.0
_POLL_S = 0.25
_PARALLEL = 8
_REQUEST_TIMEOUT_S = 30.0
_MERGE = {"Content-Type": "application/merge-patch+json"}
# As the API server writes parameters after a patch: else a patch of the finalizers changes them.
_WRITTEN = partial(json.dumps, sort_keys=True, separators=(",", ":"))
_CLAIMS = "resourceclaims"
_RESOURCE = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True)
class Question:
    """One case on one of its nodes."""

    case: Case
    node: str
    word: str
    """What stands in its names."""

    def named(self, things: Any) -> Any:
        """Objects of the case with the word in their names."""
        return json.loads(json.dumps(things).replace(UNIVERSE, self.word))

    @property
    def pod_name(self) -> str:
        return f"{self.word}-pod"

    def answer(self, outcome: Outcome, namespace: str) -> Outcome:
        """An outcome with the words of the case again."""
        match outcome:
            case Given():
                selector = json.dumps(outcome.node_selector).replace(self.word, UNIVERSE)
                return Given(outcome.devices, json.loads(selector), outcome.config)
            case _:
                words = outcome.words.replace(self.word, UNIVERSE)
                return type(outcome)(words.replace(namespace, UNIVERSE))


async def outcomes(
    kubeconfig: Path, asked: Iterable[tuple[Case, str]]
) -> list[tuple[Case, str, Outcome]]:
    """What the real scheduler makes of cases on nodes; cleans up after itself."""
    run = f"q{secrets.token_hex(3)}"
    questions = [
        Question(case, node, f"{run}{number:03d}") for number, (case, node) in enumerate(asked)
    ]
    answers: list[tuple[Case, str, Outcome]] = []
    async with _Cluster.reached(kubeconfig) as cluster, cluster.namespace(run):
        while questions:
            alone = questions[0].case.alone
            size = 1 if alone else BATCH
            batch = [q for q in questions[:size] if q.case.alone == alone]
            questions = questions[len(batch) :]
            answers += await _Batch(cluster, run, batch).answered()
    return answers


class _Cluster:
    """The API server, as far as the cases need it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._free = asyncio.Semaphore(_PARALLEL)

    @classmethod
    @asynccontextmanager
    async def reached(cls, kubeconfig: Path) -> AsyncIterator["_Cluster"]:
        told = json.loads(kubeconfig.read_text())
        server, user = told["clusters"][0]["cluster"], told["users"][0]["user"]
        tls = ssl.create_default_context(
            cadata=base64.b64decode(server["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as identity:
            for field in ("client-certificate-data", "client-key-data"):
                identity.write(base64.b64decode(user[field]))
            identity.flush()
            tls.load_cert_chain(identity.name)
        async with aiohttp.ClientSession(
            server["server"],
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S),
            json_serialize=_WRITTEN,
        ) as session:
            yield cls(session)

    async def call(
        self, method: str, path: str, body: Json | None = None, *, absent_is_fine: bool = False
    ) -> Json:
        headers = _MERGE if method == "PATCH" else {}
        async with (
            self._free,
            self._session.request(method, path, json=body, headers=headers) as answer,
        ):
            told: Json = await answer.json()
            if answer.status == 404 and absent_is_fine:
                return {}
            if answer.status == 409 and method == "POST":
                return {}
            assert answer.status < 300, f"{method} {path}: {told.get('message')}\n{body}"
            return told

    async def create(self, things: Iterable[Json]) -> None:
        await _together(self.call("POST", _collection(thing), thing) for thing in things)

    async def delete(self, things: Iterable[Json]) -> None:
        await _together(
            self.call("DELETE", _path(thing), {"gracePeriodSeconds": 0}, absent_is_fine=True)
            for thing in things
        )

    @asynccontextmanager
    async def namespace(self, name: str) -> AsyncIterator[None]:
        """A namespace in which adminAccess is allowed, with its service account."""
        labels = {"resource.kubernetes.io/admin-access": "true"}
        made = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        }
        await self.create([made])
        try:
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            await _until(lambda: self.call("GET", account, absent_is_fine=True), bool)
            yield
        finally:
            await self.delete([made])


class _Batch:
    """Questions that are asked at once."""

    def __init__(self, cluster: _Cluster, namespace: str, questions: list[Question]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._questions = questions

    async def answered(self) -> list[tuple[Case, str, Outcome]]:
        sentinel = Question(_SENTINEL, "a", f"{self._questions[0].word}s")
        everything = [*self._questions, sentinel]
        try:
            await self._prepare(self._questions)
            await self._prepare([sentinel])
            await self._ask([sentinel])
            await self._decided([sentinel], lambda pod: "nodeName" in pod["spec"])
            await self._ask(self._questions)
            pods = await self._decided(self._questions, _is_decided)
            claims = await self._list(_CLAIMS)
            return [
                (q.case, q.node, q.answer(_answer(q, pods, claims), self._namespace))
                for q in self._questions
            ]
        finally:
            await self._clean_up(everything)

    async def _prepare(self, questions: list[Question]) -> None:
        holders = [thing for q in questions for thing in self._named(q, q.case.holders)]
        await self._cluster.create(
            thing
            for q in questions
            for part in (q.case.nodes, q.case.classes, q.case.slices, q.case.claims, q.case.holders)
            for thing in self._named(q, part)
        )
        await _together(
            self._cluster.call("PATCH", f"{_path(thing)}/status", {"status": thing["status"]})
            for thing in holders
        )

    async def _ask(self, questions: list[Question]) -> None:
        await self._cluster.create(self._pod(question) for question in questions)

    async def _decided(self, questions: list[Question], decided: Any) -> dict[str, Json]:
        names = {question.pod_name for question in questions}

        async def pods() -> dict[str, Json]:
            return {n: pod for n, pod in (await self._list("pods")).items() if n in names}

        found: dict[str, Json] = await _until(pods, lambda seen: all(map(decided, seen.values())))
        return found

    async def _list(self, plural: str) -> dict[str, Json]:
        root = "/api/v1" if plural == "pods" else _RESOURCE
        told = await self._cluster.call("GET", f"{root}/namespaces/{self._namespace}/{plural}")
        return {thing["metadata"]["name"]: thing for thing in told["items"]}

    def _named(self, question: Question, things: list[Json]) -> list[Json]:
        named: list[Json] = question.named(things)
        for thing in named:
            if "namespace" in thing["metadata"]:
                thing["metadata"]["namespace"] = self._namespace
        return named

    def _pod(self, question: Question) -> Json:
        claims = [thing["metadata"]["name"] for thing in question.named(_of_pod(question.case))]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": question.pod_name, "namespace": self._namespace},
            "spec": {
                "nodeSelector": {NODE_LABEL: question.named(node_name(question.node))},
                "tolerations": [{"operator": "Exists"}],
                "automountServiceAccountToken": False,
                "containers": [{"name": "c", "image": "none.invalid/none"}],
                "resourceClaims": [
                    {"name": f"c{number}", "resourceClaimName": name}
                    for number, name in enumerate(claims)
                ],
            },
        }

    async def _clean_up(self, questions: list[Question]) -> None:
        """Claims are freed before they are deleted, or the scheduler would hear nothing of it."""
        await self._cluster.delete(self._pod(question) for question in questions)
        claims = [
            thing
            for q in questions
            for part in (q.case.claims, q.case.holders)
            for thing in self._named(q, part)
        ]
        freed = {"status": {"allocation": None, "reservedFor": None}}
        loose = {"metadata": {"finalizers": None}}
        for suffix, patch in (("/status", freed), ("", loose)):
            await _together(
                self._cluster.call("PATCH", _path(c) + suffix, patch, absent_is_fine=True)
                for c in claims
            )
        await self._cluster.delete(claims)
        await self._cluster.delete(
            thing
            for q in questions
            for part in (q.case.slices, q.case.classes, q.case.nodes)
            for thing in self._named(q, part)
        )


_SENTINEL = Case(
    name="sentinel",
    slices=[slice_(device("g0"))],
    classes=[gpu_class()],
    claims=[claim(exactly())],
    # Only when it is known to hold its device already is there one for the other claim.
    holders=[holder("h", held("gone"))],
    expected={},
)


def _of_pod(case: Case) -> list[Json]:
    return [*case.claims, *case.holders] if case is _SENTINEL else case.claims


def _is_decided(pod: Json) -> bool:
    return "nodeName" in pod["spec"] or bool(_refusal(pod))


def _refusal(pod: Json) -> Json:
    return next(
        (
            condition
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ),
        {},
    )


def _answer(question: Question, pods: dict[str, Json], claims: dict[str, Json]) -> Outcome:
    pod = pods[question.pod_name]
    if "nodeName" in pod["spec"]:
        names = [thing["metadata"]["name"] for thing in question.named(question.case.claims)]
        return ours.outcome_of([claims[name]["status"]["allocation"] for name in names])
    message = _refusal(pod)["message"]
    for words in ("cannot allocate all claims", "invalid resource pools were encountered"):
        if words in message:
            return Denied(message)
    return Failed(message)


def _collection(thing: Json) -> str:
    root = "/api/v1" if thing["apiVersion"] == "v1" else _RESOURCE
    namespace = thing["metadata"].get("namespace")
    inside = f"/namespaces/{namespace}" if namespace else ""
    plural = thing["kind"].lower() + ("es" if thing["kind"].endswith("s") else "s")
    return f"{root}{inside}/{plural}"


def _path(thing: Json) -> str:
    return f"{_collection(thing)}/{thing['metadata']['name']}"


async def _together(calls: Iterable[Any]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for call in calls:
            tasks.create_task(call)


async def _until(look: Any, enough: Any) -> Any:
    deadline = time.monotonic() + _DECIDED_TIMEOUT_S
    while True:
        seen = await look()
        if enough(seen):
            return seen
        assert time.monotonic() < deadline, f"not in {_DECIDED_TIMEOUT_S} s: {seen}"
        await asyncio.sleep(_POLL_S)
