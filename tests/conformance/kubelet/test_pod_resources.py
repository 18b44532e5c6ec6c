"""What a kubelet tells monitoring agents of the devices of its pods (PodResources API)."""

from typing import Any

import grpc.aio
import pytest
from google.protobuf.json_format import MessageToDict

from casaba.wire._proto import podresources_v1_pb2
from tests.conformance.kubelet.door import KubeletDoor
from tests.conformance.kubelet.test_devices import answer, device
from tests.conformance.kubelet.workloads import WAIT, shell

# Or grpcio takes the connection of an earlier channel, to a kubelet that has ended since.
OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


async def asked(door: KubeletDoor, method: str, **fields: str) -> Any:
    """A call of the PodResources socket: `List` or `Get`."""
    socket = door.root / "pod-resources" / "kubelet.sock"
    kind = "ListPodResources" if method == "List" else "GetPodResources"
    request = getattr(podresources_v1_pb2, f"{kind}Request")(**fields)
    async with grpc.aio.insecure_channel(f"unix://{socket}", options=OPTIONS) as channel:
        call = channel.unary_unary(
            f"/v1.PodResourcesLister/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(podresources_v1_pb2, f"{kind}Response").FromString,
        )
        return await call(request, timeout=10)


def claims_of(pod: Any) -> dict[str, Any]:
    """The claims of each container of an entry."""
    return {
        container.name: [MessageToDict(claim) for claim in container.dynamic_resources]
        for container in pod.containers
    }


async def test_the_claims_of_each_container_are_told_whole(door: KubeletDoor) -> None:
    """Also to a container that has a part; and a device has the CDI ids of those before it."""
    ids = door.write_cdi_spec("A", "B")
    async with door.serving() as plugin:
        answer(
            plugin,
            {**device(["a"], ids["A"]), "share_id": "a-share"},
            device(["b"], ids["B"], name="gpu-1"),
        )
        claim = await door.add_claim({"request": "a"}, {"request": "b", "device": "gpu-1"})
        pod = await door.run_pod(
            shell(WAIT, "c0", name="whole"),
            shell(WAIT, "c0/a", name="part"),
            shell(WAIT, name="none"),
            claims=[claim],
        )
        await door.in_phase(pod, "Running")
        first = {
            "cdiDevices": [{"name": ids["A"]}],
            "driverName": door.driver,
            "poolName": "pool",
            "deviceName": "gpu-0",
            "shareId": "a-share",
        }
        second = {
            "cdiDevices": [{"name": ids["A"]}, {"name": ids["B"]}],
            "driverName": door.driver,
            "poolName": "pool",
            "deviceName": "gpu-1",
        }
        named = {"claimName": claim["metadata"]["name"], "claimNamespace": door.namespace}
        whole = [{**named, "claimResources": [first, second]}]
        wanted = {"whole": whole, "part": whole, "none": []}
        name = pod["metadata"]["name"]
        (listed,) = [
            one
            for one in (await asked(door, "List")).pod_resources
            if (one.namespace, one.name) == (door.namespace, name)
        ]
        assert claims_of(listed) == wanted
        got = await asked(door, "Get", pod_name=name, pod_namespace=door.namespace)
        assert claims_of(got.pod_resources) == wanted


async def test_a_pod_that_is_not_there_is_named(door: KubeletDoor) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asked(door, "Get", pod_name="nobody", pod_namespace=door.namespace)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == f"pod nobody in namespace {door.namespace} not found"
