"""Registration of plugins with a simulated kubelet, and what becomes of their ResourceSlices."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import RESOURCE_SLICES
from casaba.model.ids import ClaimUid
from casaba.net.dra_sockets import DraServer, socket_paths
from casaba.settings.host_paths import DRIVER_NAME
from tests.component.simulation.kubelets import NODE, NodeUnderTest, shell, until
from tests.component.simulation.plugins import DRIVER, ScriptedPlugin
from tests.sockets import hanging_up

_SLICES = RESOURCE_SLICES.decoded_as(dict)


async def first_word(plugin: ScriptedPlugin) -> str:
    """What the plugin hears first: an error, or an empty text."""

    async def told() -> list[str]:
        return plugin.told

    return str((await until("the plugin hears of its registration", told))[0])


async def add_slice(node: NodeUnderTest, driver: str = DRIVER) -> None:
    spec = {
        "driver": driver,
        "nodeName": NODE,
        "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    await node.client.create(_SLICES, {"metadata": {"name": f"slice-{driver}"}, "spec": spec})


async def drivers(node: NodeUnderTest) -> set[str]:
    """The drivers that have slices."""
    listed = await node.client.list(_SLICES)
    return {item["spec"]["driver"] for item in listed.items}


async def has_slices(node: NodeUnderTest, *wanted: str) -> bool:
    return await drivers(node) == set(wanted)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no versions": (
        {"versions": ()},
        "empty list of supported gRPC services (aka supported versions)",
    ),
    "unknown versions": (
        {"versions": ("v2.DRAPlugin", "1.0.0")},
        'none of services supported by the plugin (["v2.DRAPlugin" "1.0.0"]) are supported by the '
        'kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
    ),
    "another kind": (
        {"kind": "Toaster"},
        "RegisterPlugin error -- no handler registered for plugin type: Toaster at socket",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
async def test_a_plugin_is_told_why_it_is_refused(node: NodeUnderTest, why: str) -> None:
    changes, message = REFUSED[why]
    async with node.running(), node.plugin(**changes) as plugin:
        assert message in await first_word(plugin)


@pytest.mark.parametrize("versions", [("v1beta1.DRAPlugin", "v1.DRAPlugin"), ("v1.DRAPlugin",)])
async def test_the_first_version_that_is_known_is_spoken(
    node: NodeUnderTest, versions: tuple[str, ...]
) -> None:
    async with node.running(), node.plugin(versions=("v9.DRAPlugin", *versions)) as plugin:
        assert await first_word(plugin) == ""
        await node.add_claim("one")
        await node.pod_in_phase(await node.run_pod(shell("exit 0"), claims=["one"]), "Succeeded")
        assert {call[0] for call in plugin.calls} == {versions[0].partition(".")[0]}


async def test_a_plugin_that_is_there_before_the_kubelet_is_found(node: NodeUnderTest) -> None:
    async with node.plugin(registry=node.settings.registry_dir / "below") as plugin:
        async with node.running():
            assert await first_word(plugin) == ""


async def test_an_empty_endpoint_means_the_registration_socket(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin(endpoint="") as plugin:
        assert await first_word(plugin) == ""


async def test_two_plugins_of_a_driver_need_two_endpoints(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as first:
        await first_word(first)
        endpoint = str(first.dra_socket)
        async with node.plugin(name="second", endpoint=endpoint) as second:
            assert await first_word(second) == (
                "RegisterPlugin error -- plugin registration failed with err: endpoint "
                f"{endpoint} already registered for DRA driver plugin {DRIVER}"
            )


async def test_the_newest_connected_plugin_is_called(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as first:
        await first_word(first)
        async with node.plugin(name="second") as second:
            await first_word(second)
            await node.add_claim("one")
            pod = await node.run_pod(shell("exec sleep 1000"), claims=["one"])
            await node.pod_in_phase(pod, "Running")
            assert (len(first.calls), len(second.calls)) == (0, 1)
            await second.stop_dra()
            await node.delete(pod)
            assert [call[1] for call in first.calls] == ["unprepare"]


async def test_a_removed_socket_ends_the_registration(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await first_word(plugin)
        plugin.registration_socket.unlink()
        await node.add_claim("one")

        async def refused() -> bool:
            pod = await node.run_pod(shell("exit 0"), claims=["one"])
            told = await node.message(pod, "FailedPrepare")
            return "is not registered" in told

        await until("the driver is not registered", refused)


async def test_a_plugin_that_comes_again_is_registered_again(node: NodeUnderTest) -> None:
    async with node.running():
        for _ in range(2):
            async with node.plugin() as plugin:
                assert await first_word(plugin) == ""


async def test_what_is_no_plugin_is_left_alone(node: NodeUnderTest) -> None:
    node.settings.registry_dir.mkdir(parents=True)
    (node.settings.registry_dir / "readme").write_text("no socket")
    async with node.running():
        deaf = node.settings.registry_dir / "deaf.sock"
        with hanging_up(deaf):
            async with node.plugin() as plugin:
                assert await first_word(plugin) == ""


async def test_slices_are_wiped_when_the_kubelet_starts(node: NodeUnderTest) -> None:
    await add_slice(node)
    async with node.running():
        await until("the slices are wiped", lambda: has_slices(node))


async def test_slices_of_a_driver_are_wiped_a_while_after_it_went(node: NodeUnderTest) -> None:
    async with node.running():
        await until("the first wipe is over", lambda: has_slices(node))
        async with node.plugin() as plugin:
            await first_word(plugin)
            await add_slice(node)
            await add_slice(node, "other.example.com")
        await until("they are wiped", lambda: has_slices(node, "other.example.com"))


async def test_slices_stay_when_the_driver_is_back_in_time(node: NodeUnderTest) -> None:
    async with node.running(wiping_delay_s=0.6):
        await until("the first wipe is over", lambda: has_slices(node))
        for name in ("first", "second", "third", "fourth", "fifth"):
            async with node.plugin(name=name) as plugin:
                await first_word(plugin)
                if name == "first":
                    await add_slice(node)
                await asyncio.sleep(0.2)
        assert await drivers(node) == {DRIVER}


async def test_the_agents_own_server_registers(node: NodeUnderTest, short_folder: Path) -> None:
    registered: list[str | None] = []
    paths = socket_paths(short_folder / "p", node.settings.registry_dir, None)

    class Driver:
        async def prepare(self, claims: object) -> dict[ClaimUid, tuple[()]]:
            return {ClaimUid(claim.uid): () for claim in claims}  # type: ignore[attr-defined]

        async def unprepare(self, claims: object) -> dict[ClaimUid, None]:
            return {ClaimUid(claim.uid): None for claim in claims}  # type: ignore[attr-defined]

    async with node.running(), DraServer(Driver(), paths, registered.append):

        async def told() -> bool:
            return registered == [None]

        await until("the agent hears of its registration", told)
        await node.add_claim("one", driver=DRIVER_NAME)
        pod = await node.run_pod(shell("exit 0"), claims=["one"])
        await node.pod_in_phase(pod, "Succeeded")


@pytest.mark.parametrize(
    ("version", "asked"), [("1.35", []), ("1.36", ["v1alpha1"]), ("1.37", ["v1"])]
)
async def test_health_is_asked_for_as_each_version_does(
    node: NodeUnderTest, version: str, asked: list[str]
) -> None:
    versions = ("v1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth")
    async with node.running(version=version), node.plugin(versions=versions) as plugin:
        await first_word(plugin)

        async def heard() -> bool:
            return bool(plugin.health_asked)

        if asked:
            await until("health is asked for", heard)
        assert plugin.health_asked == asked
