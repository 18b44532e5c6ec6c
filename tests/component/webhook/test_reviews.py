"""Whatever is posted to the webhook: a review comes back, never an error of HTTP."""

import asyncio
import base64
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casaba.simulation.api_server.json_patch import operated
from tests.component.webhook import site as sites
from tests.component.webhook.site import Object, Replica, Site, classic_pod, review_of


async def refusal(replica: Replica, content: bytes, path: str = "/mutate") -> Object:
    response = await replica.post(content, path)
    assert not response["allowed"]
    status: Object = response["status"]
    return {"uid": response["uid"], "code": status["code"], "message": status["message"]}


async def test_another_version_is_refused_with_the_fix(replica: Replica) -> None:
    content = review_of(classic_pod()).replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1")
    told = await refusal(replica, content)
    assert (told["uid"], told["code"]) == ("u-1", 400)
    assert "admissionReviewVersions: [v1]" in told["message"]


@pytest.mark.parametrize(
    ("path", "judged"), [("/mutate", "v1 Pod"), ("/validate", "ResourceClaim")]
)
async def test_another_kind_is_refused_with_the_fix(
    replica: Replica, path: str, judged: str
) -> None:
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    told = await refusal(replica, review_of({}, kind=kind), path)
    assert told["code"] == 400
    assert "'apps/v1 Deployment'" in told["message"]
    assert judged in told["message"]


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", "SNEEZE"])
async def test_other_operations_pass(replica: Replica, operation: str) -> None:
    assert (await replica.post(review_of(None, operation=operation)))["allowed"]


async def test_subresources_pass(replica: Replica) -> None:
    assert (await replica.post(review_of(classic_pod(), subResource="status")))["allowed"]


@pytest.mark.parametrize("namespace", ["", "a/b", "..", "%"])
async def test_a_namespace_that_is_none_is_refused(replica: Replica, namespace: str) -> None:
    told = await refusal(replica, review_of(classic_pod(), namespace=namespace))
    assert told["code"] == 400
    assert f"request.namespace: {namespace!r}" in told["message"]


async def test_a_body_that_is_no_utf8_is_refused(replica: Replica) -> None:
    content = review_of(classic_pod("NAME")).replace(b"NAME", b"\xff\xfe")
    told = await refusal(replica, content)
    assert (told["uid"], told["code"]) == ("u-1", 400)


async def test_a_body_that_is_too_large_is_refused_with_its_uid(site: Site) -> None:
    async with site.replica(body_limit_bytes=100_000) as replica:
        for size in (100_001, 3_000_000, 20_000_000):
            pod = classic_pod(padding="x" * size)
            told = await refusal(replica, review_of(pod, "large-one"))
            assert (told["uid"], told["code"]) == ("large-one", 413)
            assert "more than 100000 bytes" in told["message"]
        assert (await replica.post(review_of(classic_pod())))["allowed"]


async def test_a_pod_of_5_mb_is_answered_while_others_are(site: Site, replica: Replica) -> None:
    pod = classic_pod(annotations={f"a{number}": "x" * 1000 for number in range(5000)})
    content = review_of(pod, "large-one")
    assert len(content) > 5_000_000
    async with asyncio.TaskGroup() as group:
        large = [group.create_task(replica.post(content)) for _ in range(3)]
        small = [group.create_task(replica.post(review_of(classic_pod()))) for _ in range(20)]
    assert all(task.result()["allowed"] for task in (*large, *small))


async def test_thousands_of_containers_are_answered(replica: Replica) -> None:
    pod = classic_pod()
    (container,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [container | {"name": f"c-{number}"} for number in range(5000)]
    response = await replica.post(review_of(pod, "many"))
    assert response["uid"] == "many"
    assert response["allowed"] or response["status"]["code"] in (413, 422)


async def test_thousands_of_idle_containers_are_answered(replica: Replica) -> None:
    pod = classic_pod()
    many = [{"name": f"c-{number}", "image": "i"} for number in range(10_000)]
    pod["spec"]["containers"] += many
    assert (await replica.post(review_of(pod)))["allowed"]


async def test_a_body_that_ends_early_is_no_harm(replica: Replica) -> None:
    _, writer = await asyncio.open_connection(
        "127.0.0.1", replica.running.port, ssl=replica.context, server_hostname="127.0.0.1"
    )
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    writer.write(head + review_of(classic_pod())[:300])
    writer.transport.abort()
    assert (await replica.post(review_of(classic_pod())))["allowed"]


async def test_a_body_that_does_not_come_is_not_waited_for(replica: Replica) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", replica.running.port, ssl=replica.context, server_hostname="127.0.0.1"
    )
    head = b"POST /mutate?timeout=1s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    writer.write(head + review_of(classic_pod())[:300])
    assert b"200 OK" in await reader.readline()
    content = await reader.readuntil(b'"}}}')
    assert b'"code":504' in content
    writer.transport.abort()


async def test_the_word_for_an_unknown_operation_is_one(replica: Replica) -> None:
    for number in range(5):
        await replica.post(review_of(None, operation=f"OP-{number}"))
    assert await replica.metric("casaba_webhook_reviews_total", operation="unknown") == 5


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=15,
)
_words = st.sampled_from(
    ["1", "-1", "0", "101", "10Gi", "1e3", "nvidia.com/gpu", "", "main", "hami.io/dra"]
)


@st.composite
def _damaged_pods(draw: st.DrawFn) -> Any:
    """A classic pod with something else in some places."""
    pod = copy.deepcopy(classic_pod(annotations={"nvidia.com/use-gputype": "A10"}, labels={}))
    for _ in range(draw(st.integers(0, 3))):
        place: Any = pod
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.booleans()):
                place = place[key]
                continue
            place[key] = draw(_json | _words)
            break
    return pod


_POD = {"group": "", "version": "v1", "kind": "Pod"}
_CLAIM = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
_places = st.sampled_from([("/mutate", _POD), ("/mutate-update", _POD), ("/validate", _CLAIM)])
_operations = st.sampled_from(["CREATE", "UPDATE", "DELETE"])
_many = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

Post = Callable[[bytes, str], Object]


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    """Posts to a webhook that runs only meanwhile, for tests that have no loop of their own."""
    started: asyncio.Queue[Replica] = asyncio.Queue()
    over = asyncio.Event()

    async def serve() -> None:
        folder = tmp_path_factory.mktemp("webhook")
        async with sites.site(folder) as site, site.replica() as replica:
            await started.put(replica)
            await over.wait()

    with asyncio.Runner() as runner:
        serving = runner.get_loop().create_task(serve())
        replica = runner.run(started.get())
        yield lambda content, path: runner.run(replica.post(content, path))
        over.set()
        runner.get_loop().run_until_complete(serving)


@_many
@given(pod=_damaged_pods() | _json, old=_damaged_pods() | _json, at=_places, operation=_operations)
def test_any_object_is_answered(
    post: Post, pod: Any, old: Any, at: tuple[str, Object], operation: str
) -> None:
    path, kind = at
    response = post(review_of(pod, "fuzz", operation, oldObject=old, kind=kind), path)
    assert response["uid"] == "fuzz"
    assert response["allowed"] or response["status"]["code"] < 500
    for step in json.loads(base64.b64decode(response.get("patch", "W10="))):
        pod = operated(pod, step)


@_many
@given(pod=_damaged_pods(), data=st.data())
def test_any_bytes_are_answered(post: Post, pod: Any, data: st.DataObject) -> None:
    content = bytearray(review_of(pod, "fuzz"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=4))
    response = post(bytes(content), "/mutate")
    assert response["allowed"] or response["status"]["code"] < 500
