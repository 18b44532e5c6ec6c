"""With the rights that the chart grants, and no others, the programs do their work."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from casaba.cli import controller as cli
from casaba.kube import load_config
from casaba.policy.leadership import LEADS, TRUE
from casaba.services.controllers.main import make_certificates_once, run_controller
from casaba.services.doctor.main import examine_before_install, examine_before_uninstall
from casaba.settings.controllers import ControllerSettings
from casaba.settings.doctor import DoctorSettings
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.chart.rendering import NAMESPACE, Object, rendered

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
POD = "hami-dra-monitor-0"
_PATIENCE_S = 60.0
_LOOK_S = 0.05


@pytest.fixture
async def server() -> AsyncIterator[SimulatedApiServer]:
    async with SimulatedApiServer() as server:
        pod = {"containers": [{"name": "c", "image": "i"}]}
        server.seed(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": POD, "namespace": NAMESPACE},
                    "spec": pod,
                },
                *rendered().of(*RIGHTS, *WEBHOOKS),
            ]
        )
        yield server


def kubeconfig_of(server: SimulatedApiServer, folder: Path, owner: Object) -> Path:
    """Access of the account that a pod of the owner has."""
    account = owner["spec"]["template"]["spec"]["serviceAccountName"]
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
    path = folder / "kubeconfig"
    path.write_text(json.dumps(server.kubeconfig(user, groups)))
    return path


def settings_of(server: SimulatedApiServer, folder: Path, owner: Object) -> ControllerSettings:
    """As the chart starts it, with its own account."""
    spec = owner["spec"]["template"]["spec"]
    kubeconfig = kubeconfig_of(server, folder, owner)
    words = [
        *spec["containers"][0]["args"][1:],
        f"--namespace={NAMESPACE}",
        f"--pod-name={POD}",
        f"--kubeconfig={kubeconfig}",
        "--metrics-address=127.0.0.1:0",
    ]
    return cli.settings_from(cli._parser().parse_args(words))


async def until(work: Coroutine[Any, Any, None], done: Callable[[], bool]) -> None:
    """Run it until something has come true."""
    async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as group:
        running = group.create_task(work)
        while not done():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(_LOOK_S)
        running.cancel()


def named(server: SimulatedApiServer, plural: str) -> set[str]:
    return {one["metadata"]["name"] for one in server.objects(plural)}


def is_trusted(server: SimulatedApiServer) -> bool:
    """Whether every webhook has somebody to trust."""
    configurations = [
        one
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        for one in server.objects(plural)
    ]
    return bool(configurations) and all(
        w["clientConfig"].get("caBundle") for c in configurations for w in c["webhooks"]
    )


async def test_the_job_makes_the_certificates(server: SimulatedApiServer, tmp_path: Path) -> None:
    """And lets the webhooks that there are on an upgrade trust them."""
    job = rendered().one("Job", "hami-dra-certificates")
    await make_certificates_once(settings_of(server, tmp_path, job))
    assert named(server, "secrets") >= {"hami-dra-webhook-tls", "hami-dra-webhook-ca"}
    assert is_trusted(server)


async def test_the_controller_leads(
    server: SimulatedApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deployment = rendered().one("Deployment", "hami-dra-monitor")

    def leads() -> bool:
        pods = [one for one in server.objects("pods") if one["metadata"]["name"] == POD]
        return all(one["metadata"].get("labels", {}).get(LEADS) == TRUE for one in pods)

    with caplog.at_level(logging.INFO):
        work = run_controller(settings_of(server, tmp_path, deployment))
        await until(work, lambda: is_trusted(server) and leads())
    assert "casaba-controller" in named(server, "leases")
    assert "hami-dra-webhook-ca" in named(server, "secrets")
    told = [f"{one.getMessage()} {getattr(one, 'reason', '')}" for one in caplog.records]
    assert not [line for line in told if "forbidden" in line.lower()]


async def test_the_checks_may_look(server: SimulatedApiServer, tmp_path: Path) -> None:
    before = kubeconfig_of(server, tmp_path, rendered().one("Job", "hami-dra-preinstall-check"))
    found = await examine_before_install(load_config(before), DoctorSettings())
    after = kubeconfig_of(server, tmp_path, rendered().one("Job", "hami-dra-preuninstall-check"))
    found += await examine_before_uninstall(load_config(after), DoctorSettings(), by_force=False)
    assert len(found) > 4
    assert "forbidden" not in repr(found).lower()
