"""How pods with claims live on a control plane, ours or Kubernetes' own."""

from tests.component.simulation.scheduling import CLAIMS, Object, eventually
from tests.conformance.scheduling.world import World, named, templated

FINALIZER = "resource.kubernetes.io/delete-protection"
NO_ROOM = "cannot allocate all claims"


async def status_of(world: World, name: str) -> Object:
    return dict((await world.claim(name)).get("status", {}))


async def users(world: World, name: str) -> list[str]:
    return sorted(user["name"] for user in (await status_of(world, name)).get("reservedFor", ()))


async def is_free(world: World, name: str) -> bool:
    found = await world.claim(name)
    held = found.get("status", {}).get("allocation") or found["metadata"].get("finalizers")
    return not held and not await users(world, name)


async def is_gone(world: World, name: str) -> bool:
    return not await world.claim(name)


async def test_an_allocated_claim_says_all_that_a_driver_needs(world: World) -> None:
    node = await world.new_node("a")
    await world.tenant("tenant", "one", memory="4Gi", cores="10")
    found = await world.claim("one")
    assert found["metadata"]["finalizers"] == [FINALIZER]
    allocation = found["status"]["allocation"]
    assert "allocationTimestamp" in allocation
    (result,) = allocation["devices"]["results"]
    assert result.pop("shareID")
    assert result == {
        "request": "gpu",
        "driver": "gpu.test",
        "pool": node,
        "device": "gpu-0",
        "consumedCapacity": {"cores": "10", "memory": "4Gi"},
    }
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [here]}]}


async def test_a_bound_pod_is_told_by_condition_and_event(world: World) -> None:
    node = await world.new_node("a")
    await world.tenant("tenant", "one")
    conditions = (await world.pod("tenant"))["status"]["conditions"]
    assert {"type": "PodScheduled", "status": "True"}.items() <= conditions[0].items()
    (told,) = await world.events("tenant", "Scheduled")
    assert told == f"Successfully assigned {world.namespace}/tenant to {node}"


async def test_two_pods_share_a_claim_and_its_card(world: World) -> None:
    await world.new_node("a")
    await world.new_node("b")
    node = await world.tenant("first", "one")
    await world.create(world.a_pod("second", named("one")))
    assert await world.node_of("second") == node
    assert await users(world, "one") == ["first", "second"]


async def test_a_claim_is_free_when_its_last_pod_has_finished(world: World) -> None:
    await world.new_node("a")
    await world.tenant("first", "one")
    await world.finish("first")
    await eventually(lambda: is_free(world, "one"))


async def test_a_claim_is_free_when_its_last_pod_was_deleted(world: World) -> None:
    await world.new_node("a")
    await world.tenant("first", "one")
    await world.delete_pod("first")
    await eventually(lambda: is_free(world, "one"))


async def test_a_claim_that_was_freed_serves_the_next_pod(world: World) -> None:
    first, second = await world.new_node("a"), await world.new_node("b")
    await world.create(world.a_claim("one"), world.a_pod("early", named("one"), on=first))
    assert await world.node_of("early") == first
    await world.delete_pod("early")
    await world.create(world.a_pod("late", named("one"), on=second))
    assert await world.node_of("late") == second


async def test_a_pod_without_room_says_so_and_gets_what_another_leaves(world: World) -> None:
    await world.new_node("a")
    await world.tenant("first", "one", memory="10Gi")
    await world.create(world.a_claim("two", memory="10Gi"), world.a_pod("second", named("two")))
    message = await world.refused_for("second", NO_ROOM)
    assert f"1 {NO_ROOM}" in message
    assert ". still not schedulable, preemption: N nodes are available: " in message
    assert message.endswith("Preemption is not helpful for scheduling.")
    await world.finish("first")
    assert await world.node_of("second")


async def test_a_card_that_comes_later_serves_a_waiting_pod(world: World) -> None:
    await world.new_node("a", devices=0)
    await world.create(world.a_claim("one"), world.a_pod("tenant", named("one")))
    await world.refused_for("tenant", NO_ROOM)
    late = await world.new_node("b")
    assert await world.node_of("tenant") == late


async def test_a_class_that_comes_later_serves_a_waiting_pod(world: World) -> None:
    await world.new_node("a")
    late = f"late-{world.suffix}"
    await world.create(world.a_claim("one", class_name=late), world.a_pod("tenant", named("one")))
    message = await world.refused_for("tenant", "does not exist")
    assert message.startswith(
        f"N nodes are available: request gpu: device class {late} does not exist. "
        "no new claims to deallocate, preemption: N nodes are available: "
    )
    await world.new_class(late)
    assert await world.node_of("tenant")


async def test_a_claim_that_comes_later_starts_its_pod(world: World) -> None:
    await world.new_node("a")
    await world.create(world.a_pod("tenant", named("one")))
    await world.create(world.a_claim("one"))
    assert await world.node_of("tenant")


async def test_a_selector_that_fails_aborts_the_attempt(world: World) -> None:
    await world.new_node("a")
    broken = world.a_claim("one")
    expression = "device.attributes['gpu.test'].nothing == 'x'"
    exactly = broken["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": expression}}]
    await world.create(broken, world.a_pod("tenant", named("one")))
    assert await world.refused_for("tenant", "CEL") == (
        f'running "DynamicResources" filter plugin: claim {world.namespace}/one: selector #0: '
        "CEL runtime error: no such key: nothing"
    )


async def test_a_claim_in_use_keeps_its_pods_on_its_node(world: World) -> None:
    first, second = await world.new_node("a"), await world.new_node("b")
    await world.create(world.a_claim("one"), world.a_pod("early", named("one"), on=first))
    await world.node_of("early")
    await world.create(world.a_pod("late", named("one"), on=second))
    message = await world.refused_for("late", "resourceclaim")
    assert "1 resourceclaim not available on the node" in message
    assert ". still not schedulable, preemption: " in message


async def test_an_unused_claim_of_another_node_is_given_back(world: World) -> None:
    first, second = await world.new_node("a"), await world.new_node("b")
    await world.create(world.a_claim("one"))
    await world.allocate("one", first)
    await world.create(world.a_pod("tenant", named("one"), on=second))
    assert await world.node_of("tenant") == second


async def test_a_claim_is_made_from_a_template_and_is_the_pods_own(world: World) -> None:
    await world.new_node("a")
    await world.create(
        world.a_template("shares"), world.a_pod("tenant", templated("shares", "card"))
    )
    await world.node_of("tenant")
    (made,) = await world.claims()
    metadata = made["metadata"]
    tenant = await world.pod("tenant")
    assert metadata["generateName"] == "tenant-card-"
    assert metadata["annotations"] == {"resource.kubernetes.io/pod-claim-name": "card"}
    assert metadata["labels"] == {"made": "yes"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "tenant",
            "uid": tenant["metadata"]["uid"],
            "controller": True,
        }
    ]
    assert tenant["status"]["resourceClaimStatuses"] == [
        {"name": "card", "resourceClaimName": metadata["name"]}
    ]


async def test_a_made_claim_goes_when_its_pod_has_finished(world: World) -> None:
    await world.new_node("a")
    await world.create(world.a_template("shares"), world.a_pod("tenant", templated("shares")))
    await world.node_of("tenant")
    (made,) = await world.claims()
    await world.finish("tenant")
    await eventually(lambda: is_gone(world, made["metadata"]["name"]))


async def test_a_template_that_is_missing_is_told_and_may_come_later(world: World) -> None:
    await world.new_node("a")
    await world.create(world.a_pod("tenant", templated("later")))
    (told, *_) = await world.events("tenant", "FailedResourceClaimCreation")
    assert told == (
        'PodResourceClaim gpu: resource claim template "later": '
        'resourceclaimtemplate.resource.k8s.io "later" not found'
    )
    await world.create(world.a_template("later"))
    assert await world.node_of("tenant")


async def test_a_claim_that_is_deleted_stays_until_its_pod_ends(world: World) -> None:
    await world.new_node("a")
    await world.tenant("first", "one")
    await world.client.delete(CLAIMS, "one", namespace=world.namespace)
    assert (await world.claim("one"))["metadata"]["deletionTimestamp"]
    assert (await status_of(world, "one"))["allocation"]
    await world.delete_pod("first")
    await eventually(lambda: is_gone(world, "one"))


async def test_claims_of_one_pod_are_found_on_one_node_together(world: World) -> None:
    await world.new_node("a")
    node = await world.new_node("b", devices=2)
    await world.create(
        world.a_claim("one", memory="10Gi"),
        world.a_claim("two", memory="10Gi"),
        world.a_pod("tenant", named("one", "x"), named("two", "y")),
    )
    assert await world.node_of("tenant") == node


async def test_cpu_and_devices_are_looked_at_in_turn(world: World) -> None:
    await world.new_node("a")
    big = world.a_pod("big", named("one"))
    big["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1000"}
    await world.create(world.a_claim("one", memory="900Gi"), big)
    message = await world.refused_for("big", "Insufficient cpu")
    assert NO_ROOM not in message
    assert ". still not schedulable, preemption: " in message
