"""Which devices of a prepared claim reach which container, and what is told of their health."""

from typing import Any

from tests.component.simulation.plugins import ScriptedPlugin
from tests.conformance.kubelet.door import KubeletDoor
from tests.conformance.kubelet.workloads import WAIT, shell


def device(requests: list[str], *cdi_ids: str, name: str = "gpu-0") -> dict[str, Any]:
    """A device of an answer."""
    return {
        "request_names": requests,
        "pool_name": "pool",
        "device_name": name,
        "cdi_device_ids": cdi_ids,
    }


def answer(plugin: ScriptedPlugin, *devices: dict[str, Any]) -> None:
    """Let a plugin answer every claim with these devices."""
    plugin.prepare = lambda request: {claim.uid: {"devices": devices} for claim in request.claims}


def given(lines: list[str]) -> set[str]:
    """The test's devices in an environment."""
    return {line.partition("=")[0][4:] for line in lines if line.startswith("DEV_")}


async def test_a_container_gets_what_it_names(door: KubeletDoor) -> None:
    ids = door.write_cdi_spec("A", "B", "EVERY")
    async with door.serving() as plugin:
        answer(
            plugin,
            device(["a"], ids["A"]),
            device(["b"], ids["B"], name="gpu-1"),
            device([], ids["EVERY"], name="gpu-2"),
        )
        claim = await door.add_claim({"request": "a"}, {"request": "b", "device": "gpu-1"})
        pod = await door.run_pod(
            shell("env", "c0/a", name="first"),
            shell("env", "c0/b", name="second"),
            shell("env", "c0", name="whole"),
            shell("env", name="none"),
            claims=[claim],
        )
        await door.in_phase(pod, "Succeeded")
        told = {
            name: given(await door.log(pod, name)) for name in ("first", "second", "whole", "none")
        }
        assert told == {
            "first": {"A", "EVERY"},
            "second": {"B", "EVERY"},
            "whole": {"A", "B", "EVERY"},
            "none": set(),
        }


async def test_an_alternative_must_be_answered_as_its_request(door: KubeletDoor) -> None:
    """A container can't name `gpu/big`, and the kubelet takes an answer's names as they are."""
    ids = door.write_cdi_spec("WELL", "BADLY")
    async with door.serving() as plugin:
        badly = device(["gpu/big"], ids["BADLY"], name="gpu-1")
        answer(plugin, device(["gpu"], ids["WELL"]), badly)
        claim = await door.add_claim({"request": "gpu/big"})
        pod = await door.run_pod(shell("env", "c0/gpu"), claims=[claim])
        await door.in_phase(pod, "Succeeded")
        assert given(await door.log(pod, "main")) == {"WELL"}


async def test_a_device_of_several_ids_and_requests_is_given_once(door: KubeletDoor) -> None:
    ids = door.write_cdi_spec("ONE", "TWO")
    async with door.serving() as plugin:
        answer(plugin, device(["a", "b"], ids["ONE"], ids["TWO"]))
        claim = await door.add_claim({"request": "a"}, {"request": "b"})
        pod = await door.run_pod(shell("env", "c0/a", "c0/b"), claims=[claim])
        await door.in_phase(pod, "Succeeded")
        assert given(await door.log(pod, "main")) == {"ONE", "TWO"}


async def test_a_device_may_have_no_cdi_id(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        answer(plugin, device(["gpu"]))
        pod = await door.run_pod(shell("exit 0", "c0"), claims=[await door.add_claim()])
        await door.in_phase(pod, "Succeeded")


async def test_an_id_that_nobody_knows_keeps_the_container_from_starting(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        unknown = f"{door.vendor}.example/dev=nowhere"
        answer(plugin, device(["gpu"], unknown))
        pod = await door.run_pod(shell("exit 0", "c0"), claims=[await door.add_claim()])
        told = await door.container_waits(pod, "CreateContainerError")
        assert told.endswith(f"CDI device injection failed: unresolvable CDI devices {unknown}")


async def test_the_health_of_devices_is_told_in_the_status(door: KubeletDoor) -> None:
    ids = door.write_cdi_spec("A", "B")
    async with door.serving() as plugin:
        answer(plugin, device(["gpu"], ids["A"], ids["B"]), device(["gpu"], name="gpu-1"))
        claim = await door.add_claim({}, {"device": "gpu-1"})
        pod = await door.run_pod(
            shell(WAIT, "c0"),
            shell(WAIT, "c0/gpu", name="second"),
            claims=[claim],
        )
        await door.in_phase(pod, "Running")
        sick = {"device": {"pool_name": "pool", "device_name": "gpu-0"}, "health": 2}
        well = {"device": {"pool_name": "pool", "device_name": "gpu-1"}, "health": 1}
        at = {"last_updated_time": 2**40}
        plugin.health.put_nowait([{**sick, **at, "message": "too hot"}, {**well, **at}])
        resources = [
            {"resourceID": ids["A"], "health": "Unhealthy", "message": "too hot"},
            {"resourceID": f"{door.driver}/pool/gpu-1", "health": "Healthy"},
        ]

        async def told() -> Any:
            found = await door.pod(pod) or {}
            statuses = found["status"]["containerStatuses"]
            entries = {one["name"]: one.get("allocatedResourcesStatus") for one in statuses}
            return entries if "Unhealthy" in str(entries) else None

        assert await door.until("the health is told", told) == {
            "main": [{"name": "claim:c0", "resources": resources}],
            "second": [{"name": "claim:c0/gpu", "resources": resources}],
        }
