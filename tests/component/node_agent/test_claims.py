"""Claims through the kubelet's door."""

import asyncio
import stat
import uuid
from pathlib import Path

import grpc.aio
import pytest

from casaba.errors import InvalidInput
from casaba.net.dra_sockets import socket_paths
from casaba.wire._proto import dra_v1beta1_pb2
from casaba.wire.policy_file import parse_policy
from tests.component.node_agent.conftest import NodeUnderTest, Serve, result
from tests.component.node_agent.kubelet import Kubelet, health, plugin_info
from tests.unit.values import A10, GIB

UID = "11111111-2222-3333-4444-555555555555"


async def test_registration_names_the_driver_and_its_socket(serve: Serve) -> None:
    async with serve() as sockets:
        info = await plugin_info(sockets.registration)
    assert (info.type, info.name) == ("DRAPlugin", "hami-core-gpu.project-hami.io")
    assert info.endpoint == str(sockets.dra)
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    assert not sockets.registration.exists()
    assert not sockets.dra.exists()


async def test_a_prepared_claim_is_on_the_host_and_an_unprepared_one_is_not(
    node: NodeUnderTest, serve: Serve
) -> None:
    node.add_claim("half", UID)
    async with serve() as sockets:
        kubelet = Kubelet(sockets.dra)
        (device,) = (await kubelet.prepare(("half", UID)))[UID].devices
        assert device.cdi_device_ids[0] == f"casaba.dev/card={A10.uuid}"
        assert device.share_id == "3c0f1a52-0000-0000-0000-000000000000"
        budget = node.paths.claims_dir / UID / "gpu"
        (card,) = parse_policy((budget / "policy").read_bytes()).cards
        assert (card.gpu, card.memory_bytes) == (A10.uuid, 10 * GIB)
        assert stat.S_IMODE((budget / "policy").stat().st_mode) == 0o444
        assert stat.S_IMODE((budget / "region").stat().st_mode) == 0o666
        assert node.leftovers() != []
        assert (await kubelet.unprepare(("half", UID)))[UID].error == ""
    assert node.leftovers() == []


async def test_v1beta1_answers_without_share_ids(node: NodeUnderTest, serve: Serve) -> None:
    node.add_claim("half", UID)
    async with serve() as sockets:
        answer = await Kubelet(sockets.dra, dra_v1beta1_pb2).prepare(("half", UID))
    (device,) = answer[UID].devices
    assert list(device.request_names) == ["gpu"]
    assert len(device.cdi_device_ids) == 4


async def test_preparing_again_keeps_files_that_containers_have_mounted(
    node: NodeUnderTest, serve: Serve
) -> None:
    node.add_claim("half", UID)
    budget = node.paths.claims_dir / UID / "gpu"
    async with serve() as sockets:
        first = await Kubelet(sockets.dra).prepare(("half", UID))
        before = [(budget / name).stat().st_ino for name in ("policy", "region")]
        with (budget / "region").open("r+b") as region:
            region.seek(20_000)
            region.write(b"accounting")
        content = (budget / "region").read_bytes()
    async with serve() as sockets:  # the agent was restarted
        assert await Kubelet(sockets.dra).prepare(("half", UID)) == first
    assert [(budget / name).stat().st_ino for name in ("policy", "region")] == before
    assert (budget / "region").read_bytes() == content


async def test_lost_files_are_made_again(node: NodeUnderTest, serve: Serve) -> None:
    node.add_claim("half", UID)
    async with serve() as sockets:
        await Kubelet(sockets.dra).prepare(("half", UID))
        whole = node.leftovers()
        for name in ("policy", "region"):
            (node.paths.claims_dir / UID / "gpu" / name).unlink()
        next(node.paths.cdi_dir.iterdir()).unlink()
        await Kubelet(sockets.dra).prepare(("half", UID))
    assert node.leftovers() == whole


async def test_unknown_claims_are_unprepared_without_an_api_server(serve: Serve) -> None:
    async with serve() as sockets:
        assert (await Kubelet(sockets.dra).unprepare(("gone", UID)))[UID].error == ""


async def test_one_bad_claim_does_not_spoil_the_others(node: NodeUnderTest, serve: Serve) -> None:
    good, bad = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    node.add_claim("good", good)
    node.add_claim("bad", bad, result() | {"device": "hami-gpu-9"})
    async with serve() as sockets:
        answers = await Kubelet(sockets.dra).prepare(("good", good), ("bad", bad))
    assert len(answers[good].devices) == 1
    assert "claim default/bad" in answers[bad].error
    assert "'hami-gpu-9' is not on node" in answers[bad].error
    assert not any(bad in name for name in node.leftovers())


async def test_a_uid_that_would_leave_the_folder_is_refused(serve: Serve) -> None:
    async with serve() as sockets:
        answers = await Kubelet(sockets.dra).unprepare(("x", "../../etc"))
    assert "not a lower-case UUID" in answers["../../etc"].error


async def test_only_as_many_as_fit_when_all_come_at_once(node: NodeUnderTest, serve: Serve) -> None:
    claims = [(f"claim-{number}", str(uuid.UUID(int=number))) for number in range(40)]
    for name, uid in claims:
        node.add_claim(name, uid, result(memory="2Gi", cores="5"))
    async with serve() as sockets:
        answers = await Kubelet(sockets.dra).prepare(*claims)
        served = [claim for claim in claims if answers[claim[1]].devices]
        refused = [claim for claim in claims if answers[claim[1]].error]
        assert (len(served), len(refused)) == (11, 29)  # 11 times 2 GiB of 23028 MiB
        await Kubelet(sockets.dra).unprepare(served[0])
        again = await Kubelet(sockets.dra).prepare(refused[0])
        assert len(again[refused[0][1]].devices) == 1
        await Kubelet(sockets.dra).unprepare(*claims)
    assert node.leftovers() == []


async def test_a_prepare_waits_for_the_pod_before_it_to_go(
    node: NodeUnderTest, serve: Serve
) -> None:
    """A pod deleted by force frees its claim on the API server before its containers end."""
    first, second = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    node.add_claim("first", first, result(memory="20Gi"))
    node.add_claim("second", second, result(memory="20Gi"))
    node.room_wait_s = 10.0
    async with serve() as sockets, asyncio.TaskGroup() as group:
        kubelet = Kubelet(sockets.dra)
        await kubelet.prepare(("first", first))
        read = asyncio.Event()
        node.on_read = lambda _: read.set()
        waiting = group.create_task(kubelet.prepare(("second", second)))
        await read.wait()
        assert (await kubelet.unprepare(("first", first)))[first].error == ""
        assert len((await waiting)[second].devices) == 1


async def test_health_is_not_offered(serve: Serve) -> None:
    async with serve() as sockets:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health(sockets.dra)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "reports no device health" in (refused.value.details() or "")


async def test_promises_of_an_earlier_boot_do_not_count(node: NodeUnderTest, serve: Serve) -> None:
    first, second = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    node.add_claim("first", first, result(memory="20Gi"))
    node.add_claim("second", second, result(memory="20Gi"))
    async with serve() as sockets:
        await Kubelet(sockets.dra).prepare(("first", first))
        assert (
            "another claim"
            in (await Kubelet(sockets.dra).prepare(("second", second)))[second].error
        )
    node.boot_id = "second-boot"
    async with serve() as sockets:
        assert (await Kubelet(sockets.dra).prepare(("second", second)))[second].devices


def test_a_socket_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"unix socket takes 107: give a shorter --kubelet-dir"):
        socket_paths(tmp_path / ("x" * 100), tmp_path, None)


def test_instances_in_pods_have_sockets_of_their_own(short_folder: Path) -> None:
    paths = [socket_paths(short_folder, short_folder, pod) for pod in (None, "a", "b")]
    assert len({path.dra for path in paths} | {path.registration for path in paths}) == 6
