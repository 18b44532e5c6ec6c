"""What a kubelet asks of a driver before a pod starts, and what it makes of the answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from casaba.kube import PODS
from tests.component.simulation.plugins import Refusal
from tests.conformance.kubelet.door import KubeletDoor, plain_device
from tests.conformance.kubelet.workloads import shell

FAILED = "FailedPrepareDynamicResources"
PREFIX = "Failed to prepare dynamic resources: prepare dynamic resources: "


async def test_all_claims_of_a_pod_are_asked_for_in_one_call(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claims = [await door.add_claim() for _ in range(3)]
        pod = await door.run_pod(shell("exit 0"), claims=claims)
        await door.in_phase(pod, "Succeeded")
        for request in await door.called(plugin, "prepare", "unprepare"):
            assert sorted((one.namespace, one.name, one.uid) for one in request.claims) == sorted(
                (door.namespace, claim["metadata"]["name"], claim["metadata"]["uid"])
                for claim in claims
            )


async def test_a_claim_of_two_drivers_is_asked_of_both(door: KubeletDoor) -> None:
    other = f"other.{door.driver}"
    async with door.serving(driver=other) as second, door.serving() as first:
        claim = await door.add_claim({}, {"request": "nic", "driver": other})
        pod = await door.run_pod(shell("exit 0"), claims=[claim])
        await door.in_phase(pod, "Succeeded")
        await door.called(first, "prepare", "unprepare")
        await door.called(second, "prepare", "unprepare")


async def test_a_prepared_claim_is_not_asked_for_again_by_the_next_pod(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claim = await door.add_claim()
        pods = []
        for _ in range(2):
            pods.append(await door.run_pod(claims=[claim]))
            await door.in_phase(pods[-1], "Running")
        await door.called(plugin, "prepare")
        await door.delete(pods[0])
        await door.gone(pods[0])
        await door.called(plugin, "prepare")
        await door.delete(pods[1])
        await door.called(plugin, "prepare", "unprepare")


async def test_pods_that_come_at_once_both_ask_for_their_claim(door: KubeletDoor) -> None:
    """A driver must take two calls for one claim at the same time."""
    gate = asyncio.Event()
    async with door.serving(gate=gate) as plugin:
        claim = await door.add_claim()
        pods = [await door.run_pod(claims=[claim]) for _ in range(2)]
        await door.called(plugin, "prepare", "prepare")
        gate.set()
        for pod in pods:
            await door.in_phase(pod, "Running")
        await door.delete_pods()
        await door.called(plugin, "prepare", "prepare", "unprepare")


async def test_a_container_that_starts_again_is_not_prepared_again(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        pod = await door.run_pod(
            shell("sleep 0.3; exit 1", "c0"),
            claims=[await door.add_claim()],
            restartPolicy="Always",
        )

        async def restarted() -> bool:
            (status,) = ((await door.pod(pod)) or {})["status"].get("containerStatuses") or [{}]
            return bool(status.get("restartCount", 0))

        await door.until("the container has started again", restarted)
        await door.called(plugin, "prepare")


def refusing(_: Any) -> Any:
    raise Refusal(grpc.StatusCode.INTERNAL, "on fire")


BAD_ANSWERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an error of the claim": (
        lambda request: {claim.uid: {"error": "no power"} for claim in request.claims},
        "NodePrepareResources failed for ResourceClaim {claim}: no power",
    ),
    "no entry": (lambda _: {}, "NodePrepareResources skipped 1 ResourceClaims"),
    "an entry too many": (
        lambda request: {**plain_device(request), "stranger": {}},
        "NodePrepareResources returned result for unknown claim UID stranger",
    ),
    "a failed call": (
        refusing,
        "NodePrepareResources: rpc error: code = Internal desc = on fire",
    ),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS)
async def test_a_bad_answer_is_an_event_and_asked_for_again(door: KubeletDoor, answer: str) -> None:
    prepare, words = BAD_ANSWERS[answer]
    async with door.serving(prepare=prepare) as plugin:
        claim = await door.add_claim()
        pod = await door.run_pod(shell("exit 0"), claims=[claim])
        told = await door.event(pod, FAILED)
        assert told == PREFIX + words.format(claim=claim["metadata"]["name"])
        plugin.prepare = plain_device
        await door.nudge(pod)
        await door.in_phase(pod, "Succeeded")
        await door.called(plugin, "prepare", "prepare", "unprepare")


async def test_one_bad_claim_of_two_has_both_asked_for_again(door: KubeletDoor) -> None:
    def second_is_bad(request: Any) -> dict[str, Any]:
        answers = plain_device(request)
        answers[claims[1]["metadata"]["uid"]] = {"error": "no power"}
        return answers

    async with door.serving(prepare=second_is_bad) as plugin:
        claims = [await door.add_claim() for _ in range(2)]
        pod = await door.run_pod(shell("exit 0"), claims=claims)
        await door.event(pod, FAILED, "no power")
        plugin.prepare = plain_device
        await door.nudge(pod)
        await door.in_phase(pod, "Succeeded")
        requests = await door.called(plugin, "prepare", "prepare", "unprepare")
        assert [len(request.claims) for request in requests] == [2, 2, 2]


async def test_a_driver_that_is_not_there_is_named(door: KubeletDoor) -> None:
    pod = await door.run_pod(claims=[await door.add_claim()])
    told = await door.event(pod, FAILED)
    assert told == f"{PREFIX}DRA driver {door.driver} is not registered"


async def test_a_claim_must_be_reserved_for_the_pod(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claim = await door.add_claim()
        await door.reserve_for_others(claim)
        pod = await door.run_pod(claims=[claim], reserved=False)
        name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
        assert await door.event(pod, FAILED) == (
            f"{PREFIX}pod {pod['metadata']['name']} ({pod['metadata']['uid']}) is not allowed to "
            f"use ResourceClaim {name} ({uid})"
        )
        assert plugin.calls == []


async def test_a_claim_must_exist(door: KubeletDoor) -> None:
    pod = await door.run_pod(claims=[{"metadata": {"name": "nowhere"}}], reserved=False)
    assert await door.event(pod, FAILED) == (
        f'{PREFIX}fetch ResourceClaim nowhere: resourceclaims.resource.k8s.io "nowhere" not found'
    )


async def test_a_claim_from_a_template_must_have_been_made_for_the_pod(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claim = await door.add_claim()
        name = claim["metadata"]["name"]
        entry = {"name": "c0", "resourceClaimTemplateName": "template"}
        pod = await door.create_pod(resourceClaims=[entry])
        made = {"resourceClaimStatuses": [{"name": "c0", "resourceClaimName": name}]}
        pod_name = pod["metadata"]["name"]
        await door.client.patch(
            PODS, pod_name, {"status": made}, namespace=door.namespace, subresource="status"
        )
        await door.reserve(claim, pod)
        await door.bind(pod)
        assert await door.event(pod, FAILED) == (
            f"{PREFIX}ResourceClaim {door.namespace}/{name} was not created for Pod "
            f"{door.namespace}/{pod_name} (Pod is not owner)"
        )
        assert plugin.calls == []


async def test_a_claim_without_devices_needs_no_driver(door: KubeletDoor) -> None:
    claim = await door.add_claim(allocated=False)
    await door.allocate(claim, [])
    pod = await door.run_pod(shell("exit 0"), claims=[claim])
    await door.in_phase(pod, "Succeeded")
