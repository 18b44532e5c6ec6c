"""Claims on a simulated kubelet: prepared, shared, refused, unprepared, remembered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import PODS, RESOURCE_CLAIMS
from tests.component.simulation.kubelets import NODE, NodeUnderTest, shell, until
from tests.component.simulation.plugins import ScriptedPlugin, one_device

PREFIX = "FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic "


def write_cdi_spec(node: NodeUnderTest, claim: dict[str, Any], *, file: str = "a.json") -> None:
    """Let the id of a claim's device be resolvable: it sets a variable and mounts a file."""
    (folder,) = node.settings.cdi_dirs
    folder.mkdir(exist_ok=True)
    (folder / "granted").write_text("granted\n")
    uid = claim["metadata"]["uid"]
    edits = {"env": [f"CLAIM={uid}"]}
    spec = {
        "cdiVersion": "0.5.0",
        "kind": "example.com/gpu",
        "devices": [{"name": uid, "containerEdits": edits}],
        "containerEdits": {"env": ["EVERY=one"]},
    }
    (folder / file).write_text(json.dumps(spec))


async def registered(plugin: ScriptedPlugin) -> None:
    async def told() -> bool:
        return bool(plugin.told)

    await until("the plugin hears of its registration", told)


async def calls(plugin: ScriptedPlugin, method: str, count: int) -> None:
    async def made() -> bool:
        return len([call for call in plugin.calls if call[1] == method]) >= count

    await until(f"{count} calls of {method}", made)


async def test_a_claim_is_prepared_used_and_unprepared(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        write_cdi_spec(node, claim)
        pod = await node.run_pod(shell("echo $CLAIM $EVERY", "one"), claims=["one"])
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod) == f"{claim['metadata']['uid']} one\n"
        assert plugin.calls == [("v1", "prepare", ("one",)), ("v1", "unprepare", ("one",))]
        assert json.loads(node.settings.checkpoint.read_text()) == {"claims": []}


async def test_a_container_without_the_claim_gets_no_device(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        write_cdi_spec(node, await node.add_claim("one"))
        pod = await node.run_pod(
            shell("sleep 0", "one", name="with"),
            shell("echo [$CLAIM]", name="without"),
            claims=["one"],
        )
        await node.pod_in_phase(pod, "Succeeded")
        assert await node.logs(pod, container="without") == "[]\n"


async def test_all_claims_of_a_pod_come_in_one_call(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        await node.add_claim("one")
        await node.add_claim("two")
        pod = await node.run_pod(shell("exit 0"), claims=["one", "two"])
        await node.pod_in_phase(pod, "Succeeded")
        assert plugin.calls[0] == ("v1", "prepare", ("one", "two"))


async def test_pods_that_share_a_claim_have_it_prepared_once(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        write_cdi_spec(node, await node.add_claim("one"))
        pods = []
        for _ in range(2):
            pods.append(await node.run_pod(shell("exec sleep 1000", "one"), claims=["one"]))
            await node.pod_in_phase(pods[-1], "Running")
        await node.delete(pods[0])
        assert [call[1] for call in plugin.calls] == ["prepare"]
        await node.delete(pods[1])
        assert [call[1] for call in plugin.calls] == ["prepare", "unprepare"]


async def test_a_driver_that_is_not_there_is_waited_for(node: NodeUnderTest) -> None:
    async with node.running():
        await node.add_claim("one")
        pod = await node.run_pod(shell("exit 0"), claims=["one"])
        told = await node.message(pod, "FailedPrepare")
        assert told == f"{PREFIX}resources: DRA driver gpu.example.com is not registered"
        async with node.plugin():
            await node.pod_in_phase(pod, "Succeeded")


async def test_a_pod_whose_driver_never_came_can_be_deleted(node: NodeUnderTest) -> None:
    async with node.running():
        await node.add_claim("one")
        pod = await node.run_pod(shell("exit 0"), claims=["one"])
        await node.message(pod, "FailedPrepare")
        await node.delete(pod)


async def test_a_claim_that_is_not_reserved_for_the_pod_is_refused(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        entry = {"name": "one", "resourceClaimName": "one"}
        pod = await node.run_pod(shell("exit 0"), resourceClaims=[entry])
        told = await node.message(pod, "FailedPrepare")
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        assert told.endswith(
            f"pod {name} ({uid}) is not allowed to use ResourceClaim one "
            f"({claim['metadata']['uid']})"
        )
        assert plugin.calls == []


async def test_a_template_claim_must_have_been_made_for_the_pod(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        await node.add_claim("made")
        entry = {"name": "gpu", "resourceClaimTemplateName": "template"}
        pod = await node.run_pod(shell("exit 0"), resourceClaims=[entry])
        assert "ResourceClaim not created yet" in await node.message(pod, "FailedPrepare")
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
        await node.reserve("made", pod)
        name = pod["metadata"]["name"]
        await node.client.patch(
            PODS, name, {"status": status}, namespace="default", subresource="status"
        )
        told = await node.message(pod, f"{PREFIX}resources: ResourceClaim default/made")
        assert told.endswith(f"was not created for Pod default/{name} (Pod is not owner)")


async def test_a_template_claim_may_not_be_needed(node: NodeUnderTest) -> None:
    async with node.running():
        entry = {"name": "gpu", "resourceClaimTemplateName": "template"}
        pod = await node.run_pod(shell("exit 0"), resourceClaims=[entry])
        await node.client.patch(
            PODS,
            pod["metadata"]["name"],
            {"status": {"resourceClaimStatuses": [{"name": "gpu"}]}},
            namespace="default",
            subresource="status",
        )
        await node.pod_in_phase(pod, "Succeeded")


ANSWERS = {
    "error": (
        lambda request: {claim.uid: {"error": "no room"} for claim in request.claims},
        "NodePrepareResources failed for ResourceClaim one: no room",
    ),
    "skipped": (lambda _: {}, "NodePrepareResources skipped 1 ResourceClaims"),
    "unknown": (
        lambda request: {**one_device(request), "else": {}},
        "NodePrepareResources returned result for unknown claim UID else",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_wrong_answer_fails_the_pod_and_is_asked_for_again(
    node: NodeUnderTest, answer: str
) -> None:
    prepare, message = ANSWERS[answer]
    async with node.running(), node.plugin(prepare=prepare) as plugin:
        await registered(plugin)
        await node.add_claim("one")
        pod = await node.run_pod(shell("exit 0"), claims=["one"])
        assert await node.message(pod, "FailedPrepare") == f"{PREFIX}resources: {message}"
        plugin.prepare = one_device
        await node.pod_in_phase(pod, "Succeeded")


async def test_a_plugin_that_does_not_answer_is_given_up(node: NodeUnderTest) -> None:
    async with node.running(plugin_timeout_s=0.2), node.plugin() as plugin:
        await registered(plugin)
        plugin.gate = asyncio.Event()
        await node.add_claim("one")
        pod = await node.run_pod(shell("exit 0"), claims=["one"])
        assert "DeadlineExceeded" in await node.message(pod, "FailedPrepare")
        plugin.gate.set()
        await node.pod_in_phase(pod, "Succeeded")


async def test_an_unresolvable_device_keeps_the_container_from_being_made(
    node: NodeUnderTest,
) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        pod = await node.run_pod(shell("exit 0", "one"), claims=["one"])
        status = await node.container_state(pod, "CreateContainerError")
        told = status["state"]["waiting"]["message"]
        assert told.endswith(f"unresolvable CDI devices example.com/gpu={claim['metadata']['uid']}")


async def test_a_pod_stays_until_its_claims_are_unprepared(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        plugin.unprepare = lambda request: {c.uid: {"error": "busy"} for c in request.claims}
        await node.add_claim("one")
        pod = await node.run_pod(shell("exec sleep 1000"), claims=["one"])
        await node.pod_in_phase(pod, "Running")
        await node.client.delete(PODS, pod["metadata"]["name"], namespace="default")
        await calls(plugin, "unprepare", 2)
        found = await node.pod(pod["metadata"]["name"])
        assert found is not None
        assert found["status"]["phase"] == "Running"
        plugin.unprepare = lambda request: {claim.uid: {} for claim in request.claims}
        await until("the pod is gone", lambda: is_gone(node, pod))


async def is_gone(node: NodeUnderTest, pod: dict[str, Any]) -> bool:
    return await node.pod(pod["metadata"]["name"]) is None


async def test_a_restarted_kubelet_prepares_again(node: NodeUnderTest) -> None:
    async with node.plugin() as plugin:
        async with node.running():
            write_cdi_spec(node, await node.add_claim("one"))
            pod = await node.run_pod(
                shell("exec sleep 1000", "one"), claims=["one"], restartPolicy="Always"
            )
            await node.pod_in_phase(pod, "Running")
            (checkpoint,) = json.loads(node.settings.checkpoint.read_text())["claims"]
            assert checkpoint["pods"] == [pod["metadata"]["uid"]]
        async with node.running():
            await calls(plugin, "prepare", 2)

            async def restarted() -> bool:
                found = await node.pod(pod["metadata"]["name"])
                (status,) = (found or {})["status"]["containerStatuses"]
                return status["restartCount"] == 1 and "running" in status["state"]

            await until("the container runs again", restarted)
            await node.delete(pod)
            assert plugin.calls[-1] == ("v1", "unprepare", ("one",))


async def test_a_pod_that_ran_when_the_kubelet_ended_is_lost(node: NodeUnderTest) -> None:
    async with node.plugin() as plugin:
        async with node.running():
            await node.add_claim("one")
            pod = await node.run_pod(shell("exec sleep 1000"), claims=["one"])
            await node.pod_in_phase(pod, "Running")
        async with node.running():
            status = (await node.pod_in_phase(pod, "Failed"))["status"]
            ended = status["containerStatuses"][0]["state"]["terminated"]
            assert (ended["reason"], ended["exitCode"]) == ("ContainerStatusUnknown", 137)
            assert [entry[1] for entry in plugin.calls] == ["prepare", "unprepare"]


async def test_claims_of_a_pod_that_vanished_meanwhile_are_unprepared(node: NodeUnderTest) -> None:
    async with node.plugin() as plugin:
        async with node.running():
            await node.add_claim("one")
            pod = await node.run_pod(shell("exec sleep 1000"), claims=["one"])
            await node.pod_in_phase(pod, "Running")
        name = pod["metadata"]["name"]
        await node.client.delete(PODS, name, namespace="default", grace_period_s=0)
        await node.client.delete(RESOURCE_CLAIMS, "one", namespace="default")
        async with node.running():
            await calls(plugin, "unprepare", 1)


async def test_a_claim_of_the_same_name_waits_for_the_old_one(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        plugin.unprepare = lambda request: {c.uid: {"error": "busy"} for c in request.claims}
        await node.add_claim("one")
        first = await node.run_pod(shell("exec sleep 1000"), claims=["one"])
        await node.pod_in_phase(first, "Running")
        name = first["metadata"]["name"]
        await node.client.delete(PODS, name, namespace="default", grace_period_s=0)
        await node.client.delete(RESOURCE_CLAIMS, "one", namespace="default")
        await node.add_claim("one")
        second = await node.run_pod(shell("exit 0"), claims=["one"])
        told = await node.message(second, f"{PREFIX}resources: old ResourceClaim")
        assert "still exists (previous pod force-deleted?!)" in told
        plugin.unprepare = lambda request: {claim.uid: {} for claim in request.claims}
        await node.pod_in_phase(second, "Succeeded")


async def test_an_api_server_that_is_away_keeps_pods_from_starting_not_from_running(
    node: NodeUnderTest,
) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        await node.add_claim("one")
        script = (
            f"trap 'exit 0' TERM; while :; do date >> {node.settings.root}/ticks; sleep 0.05; done"
        )
        pod = await node.run_pod(shell(script), claims=["one"])
        await node.pod_in_phase(pod, "Running")
        ticks = Path(node.settings.root / "ticks")
        await node.server.stop()
        before = ticks.stat().st_size

        async def went_on() -> bool:
            return ticks.stat().st_size > before

        await until("the container still runs", went_on)
        await node.server.start()
        await node.delete(pod)
        assert plugin.calls[-1][1] == "unprepare"


async def test_share_ids_are_kept_from_1_35_on(node: NodeUnderTest) -> None:
    def with_share(request: Any) -> dict[str, Any]:
        answers = one_device(request)
        for answer in answers.values():
            answer["devices"][0]["share_id"] = "a-share"
        return answers

    for name, version, kept in (("old", "1.34", None), ("new", "1.36", "a-share")):
        async with node.running(version=version), node.plugin(prepare=with_share) as plugin:
            await registered(plugin)
            await node.add_claim(name)
            pod = await node.run_pod(shell("exec sleep 1000"), claims=[name])
            await node.pod_in_phase(pod, "Running")
            (state,) = json.loads(node.settings.checkpoint.read_text())["claims"]
            assert state["drivers"]["gpu.example.com"][0]["share_id"] == kept
            await node.delete(pod)


async def test_health_is_told_for_each_device(node: NodeUnderTest) -> None:
    async with node.running(), node.plugin() as plugin:
        await registered(plugin)
        claim = await node.add_claim("one")
        write_cdi_spec(node, claim)
        pod = await node.run_pod(shell("exec sleep 1000", "one"), claims=["one"])
        await node.pod_in_phase(pod, "Running")
        assert await health(node, pod, "Unknown") == {"health": "Unknown"}
        device = {"device": {"pool_name": NODE, "device_name": "gpu-0"}, "health": 2}
        at = {"last_updated_time": 2**40, "message": "too hot"}
        plugin.health.put_nowait([{**device, **at}])
        assert await health(node, pod, "Unhealthy") == {"health": "Unhealthy", "message": "too hot"}
        plugin.health.put_nowait([])
        await health(node, pod, "Unknown")
        assert plugin.health_asked == ["v1alpha1"]
        await node.delete(pod)


async def health(node: NodeUnderTest, pod: dict[str, Any], wanted: str) -> dict[str, str]:
    """What a pod's status says of its device, once it is that."""

    async def told() -> dict[str, str] | None:
        found = await node.pod(pod["metadata"]["name"])
        (status,) = (found or {})["status"]["containerStatuses"]
        ((entry,),) = [one["resources"] for one in status.get("allocatedResourcesStatus", [])] or [
            [{}]
        ]
        return entry if entry.get("health") == wanted else None

    entry = await until(f"the device is {wanted}", told)
    assert entry.pop("resourceID").startswith("example.com/gpu=")
    return dict(entry)
