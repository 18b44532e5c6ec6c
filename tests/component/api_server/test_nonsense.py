"""Bodies that are nearly right, and all wrong: refused, and the server goes on."""

import copy
import random
from typing import Any

import pytest

from tests.component.api_server.conftest import Door

pytestmark = pytest.mark.timeout(60)

REQUESTS = 250
RESOURCE = "/apis/resource.k8s.io/v1"
OBJECTS: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/default/pods": {
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimName": "x"}],
        }
    },
    "/api/v1/namespaces/default/configmaps": {"data": {"a": "b"}},
    "/api/v1/nodes": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    f"{RESOURCE}/namespaces/default/resourceclaims": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "g",
                        "exactly": {
                            "deviceClassName": "c",
                            "capacity": {"requests": {"memory": "10Gi"}},
                        },
                    }
                ]
            }
        }
    },
    f"{RESOURCE}/resourceslices": {
        "spec": {
            "driver": "d.io",
            "nodeName": "n",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "devices": [{"name": "d", "attributes": {"a": {"int": 1}}}],
        }
    },
}
WRITES = (
    ("POST", "application/json"),
    ("PUT", "application/json"),
    ("PATCH", "application/merge-patch+json"),
    ("PATCH", "application/strategic-merge-patch+json"),
    ("PATCH", "application/apply-patch+yaml"),
    ("DELETE", "application/json"),
)
VALUES: tuple[Any, ...] = (
    None,
    -1,
    1.5,
    True,
    "",
    "x" * 300,
    [],
    {},
    [None],
    {"a": {"b": []}},
    "a",
)


def mutated(chance: random.Random, object_: Any) -> Any:
    """An object with one value somewhere replaced, added or taken away."""
    object_ = copy.deepcopy(object_)
    place = object_
    while True:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner) or chance.random() < 0.3:
            break
        place = inner
    if isinstance(place, dict) and chance.random() < 0.2:
        del place[key]
    else:
        place[key] = chance.choice(VALUES)
    return object_


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_body_breaks_the_server(door: Door, seed: int) -> None:
    chance = random.Random(seed)
    codes: set[int] = set()
    for _ in range(REQUESTS):
        path, content = chance.choice(list(OBJECTS.items()))
        method, content_type = chance.choice(WRITES)
        body = mutated(chance, {"metadata": {"name": "a", "labels": {"a": "b"}}, **content})
        if method != "POST":
            path = f"{path}/a?fieldManager=m"
        reply = await door.ask(method, path, body, content_type=content_type)
        assert "its log has the details" not in reply.text, (method, path, body)
        codes.add(reply.code)
    assert codes >= {200, 201, 400, 404, 422}
    assert (await door.ask("GET", "/readyz")).text == "ok"
