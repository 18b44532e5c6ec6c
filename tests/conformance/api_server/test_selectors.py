"""Label and field selectors: what they find, and how bad ones are refused."""

from urllib.parse import quote

import pytest

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import made, made_config_map, pod

LABELS: dict[str, dict[str, str]] = {
    "a": {"tier": "web", "size": "3"},
    "b": {"tier": "db", "size": "10"},
    "c": {"tier": ""},
    "d": {"example.com/owner": "x"},
}


async def _found(api: ApiDoor, path: str, **query: str) -> list[str]:
    text = "&".join(f"{key}={quote(value)}" for key, value in query.items())
    told = (await api.get(f"{path}?{text}")).object()
    return [item["metadata"]["name"] for item in told["items"]]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tier=web", "a"),
        ("tier==web", "a"),
        ("tier!=web,test", "bcd"),
        ("tier in (web, db)", "ab"),
        ("tier notin (web,db),test", "cd"),
        ("tier", "abc"),
        ("!tier,test", "d"),
        ("tier=,test", "c"),
        ("tier in (,db)", "bc"),
        ("size>3", "b"),
        ("size<10", "a"),
        (" tier = web , size = 3 ", "a"),
        ("tier=web,tier=db", ""),
        ("example.com/owner=x", "d"),
        ("example.com/owner,tier", ""),
        ("in,test", ""),
    ],
)
async def test_labels_select(api: ApiDoor, selector: str, names: str) -> None:
    for name, labels in LABELS.items():
        await made_config_map(api, name, labels={**labels, "test": "1"})
    found = await _found(api, api.core("configmaps"), labelSelector=selector)
    assert [name for name in found if name in LABELS] == list(names)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
            "operators, the value must be an integer",
        ),
        (
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be '
            "non-empty",
        ),
    ],
)
async def test_a_label_selector_that_is_none_is_refused(
    api: ApiDoor, selector: str, words: str
) -> None:
    answer = await api.get(f"{api.core('configmaps')}?labelSelector={quote(selector)}")
    assert answer.refused(400, "BadRequest") == words


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name!=a", "b"),
        ("spec.nodeName=none-of-them", "b"),
        ("spec.nodeName=", "a"),
        ("status.phase=Pending,metadata.name=b", "b"),
        ("status.phase!=Pending", ""),
        ("status.podIPs=", "ab"),
        ("status.podIPs=10.0.0.1", ""),
        ("spec.schedulerName==nobody", "ab"),
        ("spec.restartPolicy=Always", "ab"),
        ("spec.hostNetwork=false", "ab"),
        ("metadata.name=a\\,b", ""),
    ],
)
async def test_fields_select(api: ApiDoor, selector: str, names: str) -> None:
    await made(api, api.core("pods"), pod("a"))
    await made(api, api.core("pods"), pod("b", node="none-of-them"))
    assert await _found(api, api.core("pods"), fieldSelector=selector) == list(names)
    await api.delete(api.core("pods", "b"), {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("path", "selector", "words"),
    [
        ("/api/v1/pods", "a=b", "field label not supported: a"),
        ("/api/v1/nodes", "metadata.namespace=a", "field label not supported: metadata.namespace"),
        (
            "/api/v1/configmaps",
            "a=b",
            '"a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "a=b",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a",
        ),
        ("/api/v1/pods", "a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "/api/v1/pods",
            "metadata.name=a=b",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "/api/v1/pods",
            "metadata.name=a\\x",
            "invalid field selector: invalid escape sequence: \\x",
        ),
    ],
)
async def test_a_field_selector_that_is_none_is_refused(
    api: ApiDoor, path: str, selector: str, words: str
) -> None:
    answer = await api.get(f"{path}?fieldSelector={quote(selector)}")
    assert answer.refused(400, "BadRequest") == words


async def test_slices_are_selected_by_node_and_driver(api: ApiDoor) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    for node, driver in (("n1", "a.example"), ("n2", "a.example"), ("n1", "b.example")):
        spec = {
            "driver": driver,
            "nodeName": api.name(node),
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [],
        }
        name = api.name(f"{node}-{driver[0]}")
        await made(api, path, {"metadata": {"name": name}, "spec": spec})
    on_first = f"spec.nodeName={api.name('n1')}"
    assert await _found(api, path, fieldSelector=on_first) == [api.name("n1-a"), api.name("n1-b")]
    both = f"{on_first},spec.driver=b.example"
    assert await _found(api, path, fieldSelector=both) == [api.name("n1-b")]
