"""How a kubelet gives claims back, and what it does when a driver or itself was away."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tests.component.simulation.plugins import Refusal, no_error
from tests.conformance.kubelet.door import KubeletDoor
from tests.conformance.kubelet.workloads import shell


async def test_claims_are_given_back_before_the_pod_is_told_to_be_over(door: KubeletDoor) -> None:
    async with door.serving(unprepare=lambda _: {}) as plugin:
        pod = await door.run_pod(shell("exit 0"), claims=[await door.add_claim()])
        await door.called_in_the_end(plugin, "unprepare")
        found = await door.pod(pod)
        assert found is not None
        assert found["status"]["phase"] in ("Pending", "Running")
        plugin.unprepare = no_error
        await door.nudge(pod)
        await door.in_phase(pod, "Succeeded")


def refusing(_: Any) -> Any:
    raise Refusal(grpc.StatusCode.INTERNAL, "on fire")


BAD_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "an error of the claim": lambda request: {
        claim.uid: {"error": "busy"} for claim in request.claims
    },
    "no entry": lambda _: {},
    "an entry too many": lambda request: {**no_error(request), "stranger": {}},
    "a failed call": refusing,
}


@pytest.mark.parametrize("answer", BAD_ANSWERS)
async def test_a_pod_stays_until_its_claims_are_given_back(door: KubeletDoor, answer: str) -> None:
    async with door.serving(unprepare=BAD_ANSWERS[answer]) as plugin:
        pod = await door.run_pod(claims=[await door.add_claim()])
        await door.in_phase(pod, "Running")
        await door.delete(pod)
        await door.called_in_the_end(plugin, "unprepare")
        assert await door.pod(pod) is not None
        plugin.unprepare = no_error
        await door.nudge(pod)
        await door.gone(pod)


async def test_a_driver_that_is_away_is_waited_for(door: KubeletDoor) -> None:
    async with door.plugin() as plugin:
        assert await door.first_word(plugin) == ""
        pod = await door.run_pod(claims=[await door.add_claim()])
        await door.in_phase(pod, "Running")
    await door.delete(pod)
    async with door.serving() as back:
        await door.nudge(pod)
        await door.gone(pod)
        assert {call[1] for call in back.calls} == {"unprepare"}


async def test_a_pod_whose_driver_never_came_can_be_deleted(door: KubeletDoor) -> None:
    pod = await door.run_pod(claims=[await door.add_claim()])
    await door.event(pod, "FailedPrepareDynamicResources")
    await door.delete(pod)
    await door.gone(pod)


async def test_a_claim_that_is_gone_is_given_back_all_the_same(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claim = await door.add_claim()
        pod = await door.run_pod(claims=[claim])
        await door.in_phase(pod, "Running")
        await door.delete_claim(claim)
        await door.delete(pod)
        (given,) = (await door.called_in_the_end(plugin, "unprepare")).claims
        told = (given.namespace, given.name, given.uid)
        assert told == (door.namespace, claim["metadata"]["name"], claim["metadata"]["uid"])


async def test_a_pod_deleted_by_force_gives_its_claims_back(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        pod = await door.run_pod(claims=[await door.add_claim()])
        await door.in_phase(pod, "Running")
        await door.delete(pod, grace_period_s=0)
        await door.called(plugin, "prepare", "unprepare")


async def test_a_failed_prepare_is_given_back_too(door: KubeletDoor) -> None:
    bad = BAD_ANSWERS["an error of the claim"]
    async with door.serving(prepare=bad) as plugin:
        pod = await door.run_pod(claims=[await door.add_claim()])
        await door.event(pod, "FailedPrepareDynamicResources")
        await door.delete(pod)
        await door.called(plugin, "prepare", "unprepare")


async def test_a_driver_at_work_is_waited_for_before_its_pod_goes(door: KubeletDoor) -> None:
    gate = asyncio.Event()
    async with door.serving(gate=gate) as plugin:
        pod = await door.run_pod(claims=[await door.add_claim()])
        await door.called(plugin, "prepare")
        await door.delete(pod)
        gate.set()
        await door.called(plugin, "prepare", "unprepare")
        await door.gone(pod)
        assert plugin.answered == ["prepare", "unprepare"]


async def test_a_claim_of_the_same_name_waits_for_the_one_before(door: KubeletDoor) -> None:
    async with door.serving(unprepare=BAD_ANSWERS["an error of the claim"]) as plugin:
        old = await door.add_claim(name="again")
        first = await door.run_pod(claims=[old])
        await door.in_phase(first, "Running")
        await door.delete(first, grace_period_s=0)
        await door.delete_claim(old)
        await door.called_in_the_end(plugin, "unprepare")
        second = await door.run_pod(shell("exit 0"), claims=[await door.add_claim(name="again")])
        told = await door.event(second, "FailedPrepareDynamicResources")
        uid = old["metadata"]["uid"]
        assert told == (
            "Failed to prepare dynamic resources: prepare dynamic resources: old ResourceClaim "
            f"with same name again and different UID {uid} still exists "
            "(previous pod force-deleted?!)"
        )
