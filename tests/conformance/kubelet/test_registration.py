"""How a kubelet finds plugins, which it takes, and what it says to the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.component.simulation.plugins import ScriptedPlugin
from tests.conformance.kubelet.door import KubeletDoor
from tests.conformance.kubelet.workloads import shell

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no versions": (
        {"versions": ()},
        "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC "
        "versions of DRA driver plugin {driver} at endpoint {endpoint}: "
        "empty list of supported gRPC services (aka supported versions)",
    ),
    "versions that nobody knows": (
        {"versions": ("v2.DRAPlugin", "1.0.0")},
        "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC "
        "versions of DRA driver plugin {driver} at endpoint {endpoint}: none of services "
        'supported by the plugin (["v2.DRAPlugin" "1.0.0"]) are supported by the kubelet '
        '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
    ),
    "another type": (
        {"kind": "Toaster"},
        "RegisterPlugin error -- no handler registered for plugin type: Toaster at socket {socket}",
    ),
    "no type": (
        {"kind": ""},
        "RegisterPlugin error -- no handler registered for plugin type:  at socket {socket}",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
async def test_a_plugin_hears_why_it_is_refused(door: KubeletDoor, why: str) -> None:
    changes, words = REFUSED[why]
    async with door.plugin(**changes) as plugin:
        assert await door.first_word(plugin) == words.format(
            driver=plugin.driver,
            endpoint=plugin.endpoint,
            socket=door.seen(plugin.registration_socket),
        )


async def test_a_driver_needs_no_name(door: KubeletDoor) -> None:
    async with door.plugin(driver="") as plugin:
        assert await door.first_word(plugin) == ""


VERSIONS = {
    "the older one first": ("v1beta1.DRAPlugin", "v1.DRAPlugin"),
    "the newer one first": ("v1.DRAPlugin", "v1beta1.DRAPlugin"),
    "only the older one": ("v1beta1.DRAPlugin",),
}


@pytest.mark.parametrize("order", VERSIONS)
async def test_the_first_known_version_of_the_list_is_spoken(door: KubeletDoor, order: str) -> None:
    versions = VERSIONS[order]
    async with door.serving(versions=("v9.DRAPlugin", *versions, "other")) as plugin:
        pod = await door.run_pod(shell("exit 0"), claims=[await door.add_claim()])
        await door.in_phase(pod, "Succeeded")
        await door.called(plugin, "prepare", "unprepare")
        assert {call[0] for call in plugin.calls} == {versions[0].partition(".")[0]}


async def test_a_socket_in_a_folder_below_is_found(door: KubeletDoor) -> None:
    below = door.registry / door.vendor
    async with door.plugin(registry=below) as plugin:
        assert await door.first_word(plugin) == ""
    below.rmdir()


async def test_a_socket_with_a_dot_is_left_alone(door: KubeletDoor) -> None:
    async with door.plugin(name=f".{door.vendor}") as hidden, door.plugin() as plugin:
        assert await door.first_word(plugin) == ""
        assert hidden.told == []


async def test_files_and_deaf_sockets_keep_nobody_from_registering(door: KubeletDoor) -> None:
    readme, deaf = (door.registry / f"{door.vendor}-{name}" for name in ("readme", "deaf.sock"))
    readme.write_text("no socket")
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), deaf)
    try:
        async with server, door.plugin() as plugin:
            assert await door.first_word(plugin) == ""
    finally:
        readme.unlink()
        Path(deaf).unlink(missing_ok=True)


async def test_a_plugin_that_first_fails_is_asked_again(door: KubeletDoor) -> None:
    async with door.plugin(info_failures=1) as plugin:
        assert await door.first_word(plugin) == ""


async def test_an_empty_endpoint_means_the_registration_socket(door: KubeletDoor) -> None:
    async with door.plugin(endpoint="") as plugin:
        assert await door.first_word(plugin) == ""


async def test_one_endpoint_is_not_registered_twice(door: KubeletDoor) -> None:
    async with door.plugin() as first:
        assert await door.first_word(first) == ""
        async with door.plugin(endpoint=first.endpoint) as second:
            assert await door.first_word(second) == (
                "RegisterPlugin error -- plugin registration failed with err: endpoint "
                f"{first.endpoint} already registered for DRA driver plugin {door.driver}"
            )


async def test_of_two_plugins_the_newest_connected_one_is_called(door: KubeletDoor) -> None:
    async with door.serving() as first:
        claim = await door.add_claim()
        async with door.plugin() as second:
            assert await door.first_word(second) == ""
            pod = await door.run_pod(claims=[claim])
            await door.in_phase(pod, "Running")
            assert (len(first.calls), len(second.calls)) == (0, 1)
            await second.stop_dra()
            await door.delete(pod)
            await door.called(first, "unprepare")
            await door.gone(pod)


async def test_a_removed_socket_ends_the_registration(door: KubeletDoor) -> None:
    async with door.plugin() as plugin:
        assert await door.first_word(plugin) == ""
        await door.until_true("its health is asked for", lambda: plugin.health_asked)
        plugin.registration_socket.unlink()
        await door.until_true("it is asked no more", lambda: plugin.health_ended)
        pod = await door.run_pod(claims=[await door.add_claim()])
        told = await door.event(pod, "FailedPrepareDynamicResources")
        assert told.endswith(f"DRA driver {door.driver} is not registered")
        assert plugin.calls == []


async def test_a_plugin_that_comes_again_is_registered_again(door: KubeletDoor) -> None:
    plugins: list[ScriptedPlugin] = []
    for _ in range(2):
        async with door.plugin(name=door.vendor) as plugin:
            plugins.append(plugin)
            assert await door.first_word(plugin) == ""
