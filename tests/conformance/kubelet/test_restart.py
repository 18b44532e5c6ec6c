"""A kubelet that comes back, and the slices of drivers that don't."""

from tests.conformance.kubelet.door import KubeletDoor


async def test_a_plugin_that_was_there_before_the_kubelet_is_found(door: KubeletDoor) -> None:
    await door.stop()
    async with door.plugin() as plugin:
        await door.start()
        assert await door.first_word(plugin) == ""


async def test_slices_of_the_node_go_when_its_kubelet_starts(door: KubeletDoor) -> None:
    await door.add_slice()
    await door.stop()
    assert await door.slices() != []
    await door.start()
    await door.until("the slices are gone", door.has_no_slices)


async def test_slices_go_a_while_after_their_driver(door: KubeletDoor) -> None:
    async with door.plugin() as plugin:
        assert await door.first_word(plugin) == ""
        await door.add_slice()
    assert await door.slices() != []
    await door.until("the slices are gone", door.has_no_slices)


async def test_a_pod_that_was_deleted_meanwhile_gives_its_claims_back(door: KubeletDoor) -> None:
    async with door.serving() as plugin:
        claim = await door.add_claim()
        pod = await door.run_pod(claims=[claim])
        await door.in_phase(pod, "Running")
        await door.stop()
        await door.delete(pod)
        await door.start()
        await door.gone(pod)
        *_, request = await door.called(plugin, "prepare", "unprepare")
        assert [one.uid for one in request.claims] == [claim["metadata"]["uid"]]
