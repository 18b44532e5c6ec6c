"""What Helm did not make goes from a simulated API server, and nothing else."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from casaba.policy.collection import MADE_BY, WEBHOOK
from casaba.services.uninstall.leftovers import LeftoversStay, delete_leftovers
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.uninstall import UninstallSettings
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import LostAnswer, Refusal, Target

NAMESPACE = "hami-system"
RESOURCE = "resource.k8s.io/v1"
MADE = "casaba-0123456789abcdef"

Object = dict[str, Any]


def template(name: str, namespace: str, **labels: str) -> Object:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"spec": {"devices": {"requests": []}}},
    }


def slice_of(driver: str, name: str) -> Object:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": "gpu-1",
            "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [],
        },
    }


def named(kind: str, api_version: str, name: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


OURS = [
    template(MADE, "default", **{MADE_BY: WEBHOOK}),
    template(MADE, NAMESPACE, **{MADE_BY: WEBHOOK}),
    slice_of(DRIVER_NAME, "gpu-1-ours"),
    named("Lease", "coordination.k8s.io/v1", "casaba-controller", spec={}),
    named("Secret", "v1", "webhook-tls"),
    named("Secret", "v1", "webhook-ca"),
]
THEIRS = [
    template(MADE, "kube-public"),
    template("copied", "default", **{MADE_BY: WEBHOOK}),
    template("casaba-fedcba9876543210", "default", **{MADE_BY: "me"}),
    slice_of("gpu.nvidia.com", "gpu-1-theirs"),
    named("Secret", "v1", "other"),
]
PLURALS = ("resourceclaimtemplates", "resourceslices", "leases", "secrets")


def there(server: SimulatedApiServer) -> set[tuple[str, str, str]]:
    return {
        (plural, one["metadata"].get("namespace", ""), one["metadata"]["name"])
        for plural in PLURALS
        for one in server.objects(plural)
    }


@pytest.fixture
async def server() -> AsyncIterator[SimulatedApiServer]:
    async with SimulatedApiServer() as server:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        server.seed([namespace, *THEIRS])
        yield server


@pytest.fixture
def settings(server: SimulatedApiServer, tmp_path: Path) -> UninstallSettings:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(server.kubeconfig("kubernetes-admin", ("system:masters",))))
    return UninstallSettings(
        namespace=NAMESPACE,
        kubeconfig=path,
        leases=("casaba-controller",),
        secrets=("webhook-tls", "webhook-ca"),
    )


async def test_ours_goes_and_theirs_stays(
    server: SimulatedApiServer, settings: UninstallSettings
) -> None:
    before = there(server)
    server.seed(OURS)
    told: list[str] = []
    await delete_leftovers(settings, told.append)
    assert there(server) == before
    assert sorted(told) == [
        "removed: Lease hami-system/casaba-controller",
        f"removed: ResourceClaimTemplate default/{MADE}",
        f"removed: ResourceClaimTemplate hami-system/{MADE}",
        "removed: ResourceSlice gpu-1-ours",
        "removed: Secret hami-system/webhook-ca",
        "removed: Secret hami-system/webhook-tls",
    ]


async def test_what_is_gone_is_fine(
    server: SimulatedApiServer, settings: UninstallSettings
) -> None:
    before = there(server)
    told: list[str] = []
    await delete_leftovers(settings, told.append)
    assert told == []
    assert there(server) == before


async def test_only_what_is_named_goes_by_name(
    server: SimulatedApiServer, settings: UninstallSettings
) -> None:
    server.seed(OURS)
    nothing = UninstallSettings(namespace=NAMESPACE, kubeconfig=settings.kubeconfig)
    await delete_leftovers(nothing, print)
    left = {name for plural, _, name in there(server) if plural in ("leases", "secrets")}
    assert left == {"casaba-controller", "webhook-tls", "webhook-ca", "other"}


@pytest.mark.parametrize("plural", PLURALS)
async def test_one_that_fails_does_not_stop_the_others(
    server: SimulatedApiServer, settings: UninstallSettings, plural: str
) -> None:
    before = there(server)
    server.seed(OURS)
    target = Target(verbs={"delete"}, resources={plural})
    server.faults.add(Refusal(code=403), target, times=None)
    with pytest.raises(LeftoversStay, match=plural):
        await delete_leftovers(settings, print)
    assert {one for one in there(server) - before if one[0] != plural} == set()
    server.faults.clear()
    await delete_leftovers(settings, print)
    assert there(server) == before


async def test_answers_that_are_lost(
    server: SimulatedApiServer, settings: UninstallSettings
) -> None:
    """It may have been done; done again it comes to the same."""
    before = there(server)
    server.seed(OURS)
    server.faults.add(LostAnswer(done=True), Target(verbs={"delete"}), times=3)
    with suppress(LeftoversStay):
        await delete_leftovers(settings, print)
    await delete_leftovers(settings, print)
    assert there(server) == before
