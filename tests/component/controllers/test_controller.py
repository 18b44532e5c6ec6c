"""Two replicas of the whole controller: one leads, tells and writes; the other takes over."""

from pathlib import Path

import pytest

from casaba.kube import (
    LEASES,
    PODS,
    SECRETS,
    KubeClient,
)
from casaba.policy.leadership import LEADS
from casaba.settings.controllers import (
    CertificateSettings,
)
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import Refusal, Target
from tests.component.controllers.conftest import NAMESPACE
from tests.component.controllers.replica import (
    OF_EVERY_REPLICA,
    Replica,
    labelled,
    make_pod,
    make_tenant,
    settings,
    two,
    until,
)

pytestmark = pytest.mark.timeout(120)


async def test_only_the_leader_tells_and_its_pod_is_labelled(
    kubeconfig: Path, client: KubeClient
) -> None:
    await make_tenant(client)
    async with two(kubeconfig, client) as (first, second):

        async def first_is_labelled() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(first_is_labelled)
        assert set(await second.samples()) == set(OF_EVERY_REPLICA)
        await first.stop()
        await until(second.leads)

        async def second_is_labelled() -> bool:
            return await labelled(client) == ["ctl-b"]

        await until(second_is_labelled)

        async def second_tells() -> bool:
            return "hami_gpu_memory_limit_bytes" in await second.samples()

        await until(second_tells)
    lease = await client.get(LEASES, "casaba-controller", namespace=NAMESPACE)
    assert lease.spec.holder_identity == ""
    assert await labelled(client) == []


async def test_the_label_of_a_dead_leader_is_taken_off(
    kubeconfig: Path, client: KubeClient
) -> None:
    for name in ("ctl-a", "ctl-b"):
        await make_pod(client, name, NAMESPACE)
    dead = {"metadata": {"labels": {LEADS: "true"}}}
    await client.patch(PODS, "ctl-b", dead, namespace=NAMESPACE)
    async with Replica(settings(kubeconfig, "ctl-a")):

        async def moved() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(moved)


async def test_a_label_that_cannot_be_written_is_tried_again(
    kubeconfig: Path, client: KubeClient, server: SimulatedApiServer
) -> None:
    await make_pod(client, "ctl-a", NAMESPACE)
    server.faults.add(Refusal(code=403), Target(verbs={"patch"}, subresources={"status"}), times=3)
    async with Replica(settings(kubeconfig, "ctl-a")):

        async def written() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(written)
    assert server.faults.met == 3


async def test_without_quotas_on_the_server_it_is_ready_all_the_same(kubeconfig: Path) -> None:
    async with Replica(settings(kubeconfig)) as replica:

        async def ready() -> bool:
            return bool(replica.port) and (await replica.read("/readyz"))[0] == 200

        await until(ready)
        assert (await replica.read("/healthz"))[0] == 200


async def test_it_keeps_the_certificates(kubeconfig: Path, client: KubeClient) -> None:
    wanted = CertificateSettings(check_s=0.1)
    async with Replica(settings(kubeconfig, certificates=wanted)) as replica:
        await until(replica.leads)

        async def told() -> bool:
            name = "casaba_controller_certificate_expiry_timestamp_seconds"
            return len((await replica.samples()).get(name, {})) == 2

        await until(told)
    await client.get(SECRETS, wanted.serving_secret, namespace=NAMESPACE)
