"""What /metrics tells of gates and requests."""

import aiohttp
import pytest

from tests.conformance.api_server.door import ApiDoor


@pytest.mark.parametrize(
    "line",
    [
        'kubernetes_feature_enabled{name="DRAConsumableCapacity",stage="BETA"} 1',
        'kubernetes_feature_enabled{name="DRAPrioritizedList",stage=""} 1',
        'kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 0',
        'kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1',
    ],
)
async def test_gates_are_told(api: ApiDoor, line: str) -> None:
    assert line in (await api.get("/metrics")).text.splitlines()


async def test_requests_are_counted(api: ApiDoor) -> None:
    (await api.get(api.core("configmaps", "none"))).refused(404, "NotFound")
    labels = (
        'code="404",component="apiserver",dry_run="",group="",resource="configmaps",'
        'scope="resource",subresource="",verb="GET",version="v1"'
    )
    lines = (await api.get("/metrics")).text.splitlines()
    (count,) = (line for line in lines if line.startswith(f"apiserver_request_total{{{labels}}}"))
    assert int(count.rpartition(" ")[2]) >= 1


async def test_not_everybody_may_see_them(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    stranger = api.as_bearer("", without_certificate)
    message = (await stranger.get("/metrics")).refused(403, "Forbidden")
    assert message == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
