"""casaba's client against the real API server; what that seldom does is in tests/component/kube."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from casaba.kube import (
    RESOURCE_CLAIMS,
    Added,
    Conflict,
    Deleted,
    Forbidden,
    Informer,
    Invalid,
    KubeClient,
    Modified,
    NotFound,
    Synced,
    load_config,
)
from tests.cluster.bed import Bed
from tests.e2e.workloads import claim

CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)
NEWS_TIMEOUT_S = 20.0


@pytest.fixture
async def client(bed: Bed) -> AsyncIterator[KubeClient]:
    """The administrator's client."""
    async with KubeClient(load_config(bed.kubeconfig)) as client:
        yield client


@pytest.fixture
async def name(client: KubeClient) -> AsyncIterator[str]:
    """The name of a claim that is gone afterwards."""
    name = f"client-{uuid.uuid4().hex[:8]}"
    yield name
    try:
        await client.delete(CLAIMS, name, namespace="default")
    except NotFound:
        return


def body(name: str, **labels: str) -> dict[str, Any]:
    """A claim with labels."""
    made = claim(name, ("gpu", "1Gi", 1))
    made["metadata"]["labels"] = labels
    return made


async def test_verbs(client: KubeClient, name: str) -> None:
    created = await client.create(CLAIMS, body(name, a="1"), namespace="default")
    assert await client.get(CLAIMS, name, namespace="default") == created
    patch = {"metadata": {"labels": {"a": "2"}}}
    patched = await client.patch(CLAIMS, name, patch, namespace="default")
    assert patched["metadata"]["labels"] == {"a": "2"}
    listed = await client.list(CLAIMS, namespace="default", label_selector="a=2")
    assert [item["metadata"]["name"] for item in listed.items] == [name]
    await client.delete(CLAIMS, name, namespace="default")
    with pytest.raises(NotFound, match=f"get .*/resourceclaims/{name}"):
        await client.get(CLAIMS, name, namespace="default")


async def test_preconditions(client: KubeClient, name: str) -> None:
    created = await client.create(CLAIMS, body(name), namespace="default")
    old = created["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"b": "1"}}}
    await client.patch(CLAIMS, name, patch, namespace="default", resource_version=old)
    with pytest.raises(Conflict):
        await client.patch(CLAIMS, name, patch, namespace="default", resource_version=old)
    for wrong in ({"uid": str(uuid.uuid4())}, {"resource_version": old}):
        with pytest.raises(Conflict):
            await client.delete(CLAIMS, name, namespace="default", **wrong)


async def test_apply_knows_whose_fields_are_whose(bed: Bed, client: KubeClient, name: str) -> None:
    await client.apply(CLAIMS, name, body(name, ours="1"), namespace="default")
    async with KubeClient(load_config(bed.kubeconfig), field_manager="other") as other:
        with pytest.raises(Conflict, match="conflict"):
            await other.apply(CLAIMS, name, body(name, ours="2"), namespace="default", force=False)
        applied = await other.apply(CLAIMS, name, body(name, ours="2"), namespace="default")
    assert applied["metadata"]["labels"] == {"ours": "2"}


async def test_refusals_have_their_kind(bed: Bed, client: KubeClient, name: str) -> None:
    wrong = body(name)
    wrong["spec"]["devices"]["requests"][0]["name"] = "Not A Label"
    with pytest.raises(Invalid, match="Not A Label"):
        await client.create(CLAIMS, wrong, namespace="default")
    agent = load_config(bed.node("edge-1").folder / "etc" / "agent.kubeconfig")
    reachable = replace(agent, server=load_config(bed.kubeconfig).server)
    async with KubeClient(reachable) as limited:
        with pytest.raises(Forbidden, match="grant it with RBAC"):
            await limited.list(CLAIMS)


async def test_an_informer_follows_a_claim_from_start_to_end(client: KubeClient, name: str) -> None:
    selector = f"metadata.name={name}"
    async with Informer(client, CLAIMS, namespace="default", field_selector=selector) as claims:
        async with asyncio.timeout(NEWS_TIMEOUT_S):
            assert isinstance(await anext(claims), Synced)
            await client.create(CLAIMS, body(name, step="1"), namespace="default")
            assert isinstance(await anext(claims), Added)
            await client.patch(
                CLAIMS, name, {"metadata": {"labels": {"step": "2"}}}, namespace="default"
            )
            changed = await anext(claims)
            assert isinstance(changed, Modified)
            assert changed.object["metadata"]["labels"] == {"step": "2"}
            await client.delete(CLAIMS, name, namespace="default")
            assert isinstance(await anext(claims), Deleted)
        assert not claims.objects
