"""`casaba controller` as a process and as a Job; its flags."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from casaba.cli.controller import _parser, settings_from
from casaba.errors import InvalidInput
from casaba.kube import (
    LEASES,
    SECRETS,
    KubeClient,
    NotFound,
)
from casaba.services.controllers.main import make_certificates_once
from casaba.settings.controllers import (
    CertificateSettings,
    ControllerSettings,
    TrustSettings,
)
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import Refusal, Target
from tests.component.controllers.conftest import NAMESPACE
from tests.component.controllers.replica import settings, until

pytestmark = pytest.mark.timeout(120)


async def test_certificates_once_is_refused_where_they_are_turned_off(kubeconfig: Path) -> None:
    with pytest.raises(InvalidInput, match="--no-certificates"):
        await make_certificates_once(settings(kubeconfig))


def command(kubeconfig: Path, *arguments: str) -> list[str]:
    program = "import sys; from casaba.cli.controller import main; sys.exit(main(sys.argv[1:]))"
    common = ["--namespace", NAMESPACE, "--kubeconfig", str(kubeconfig)]
    return [sys.executable, "-c", program, *common, *arguments]


async def test_a_signal_ends_the_process_in_order(kubeconfig: Path, client: KubeClient) -> None:
    process = await asyncio.create_subprocess_exec(
        *command(kubeconfig, "--metrics-address", "127.0.0.1:0"), stderr=asyncio.subprocess.PIPE
    )

    async def holder() -> str | None:
        try:
            lease = await client.get(LEASES, "casaba-controller", namespace=NAMESPACE)
        except NotFound:
            return None
        return lease.spec.holder_identity

    await until(holder)
    process.terminate()
    _, told = await process.communicate()
    assert process.returncode == 0, told.decode()
    assert await holder() == ""
    events = [json.loads(line)["event"] for line in told.splitlines()]
    assert "election.won" in events


async def test_the_job_before_an_installation(kubeconfig: Path, client: KubeClient) -> None:
    for _ in range(2):  # the second finds all in order
        process = await asyncio.create_subprocess_exec(
            *command(kubeconfig, "--certificates-once"), stderr=asyncio.subprocess.PIPE
        )
        _, told = await process.communicate()
        assert process.returncode == 0, told.decode()
        assert b"PRIVATE" not in told
    found = await client.get(SECRETS, CertificateSettings().serving_secret, namespace=NAMESPACE)
    assert found["type"] == "kubernetes.io/tls"


async def test_the_job_fails_with_a_sentence_where_it_may_not_write(
    kubeconfig: Path, server: SimulatedApiServer
) -> None:
    server.faults.add(Refusal(code=403, message="not yours"), Target(verbs={"create"}), times=None)
    process = await asyncio.create_subprocess_exec(
        *command(kubeconfig, "--certificates-once"), stderr=asyncio.subprocess.PIPE
    )
    _, told = await process.communicate()
    assert process.returncode == 4
    assert "casaba controller: create" in told.decode()
    assert "not yours" in told.decode()


def flags(*arguments: str) -> ControllerSettings:
    return settings_from(_parser().parse_args([*arguments]))


def test_the_flags_default_to_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert flags() == ControllerSettings(namespace="hami-system")


def test_flags_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "ctl-a")
    monkeypatch.setenv("POD_NAMESPACE", "gpu")
    found = flags(
        *("--no-certificates", "--no-legacy-metrics"),
        *("--collect-after", "30", "--collect-settle", "90"),
    )
    assert (found.namespace, found.pod_name, found.certificates) == ("gpu", "ctl-a", None)
    assert not found.allocation_metrics.legacy_dra_names
    assert (found.collection.period_s, found.collection.settle_s) == (30, 90)
    names = flags("--mutating-webhooks", "a, b,", "--validating-webhooks", "").certificates
    assert names is not None
    assert (names.mutating, names.validating) == (("a", "b"), ())


@pytest.mark.parametrize("days", [("400", "300"), ("90", "90"), ("0", "0")])
def test_lifetimes_that_cannot_be_kept_are_refused(days: tuple[str, str]) -> None:
    serving, authority = days
    with pytest.raises(InvalidInput, match="serving certificate can't live"):
        flags("--serving-days", serving, "--authority-days", authority)


def test_somebody_elses_certificate_is_trusted_by_its_secret() -> None:
    flags = [
        "--no-certificates",
        "--trust-secret=mine",
        "--validating-webhooks=",
        "--propagation=9",
    ]
    read = settings_from(_parser().parse_args(flags))
    assert read.certificates is None
    assert read.trust == TrustSettings(secret="mine", validating=(), propagation_s=9.0)
    assert settings_from(_parser().parse_args([])).trust is None


def test_one_makes_certificates_or_trusts_somebody_elses() -> None:
    with pytest.raises(InvalidInput, match="give --no-certificates too"):
        settings_from(_parser().parse_args(["--trust-secret=mine"]))
