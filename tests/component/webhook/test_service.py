"""The webhook's life: ready when it is, new certificates under load, and a graceful end."""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from casaba.cli.webhook import _parser, settings_from
from casaba.errors import InvalidInput
from casaba.services.webhook.main import serving_webhook
from casaba.settings.webhook import WebhookSettings
from casaba.simulation.api_server.faults import Refusal, Slowness, Target
from tests.component.webhook.certificates import Authority
from tests.component.webhook.site import Replica, Site, classic_pod, review_of, until

TEMPLATES = ("resourceclaimtemplates",)


async def readiness(replica: Replica) -> str:
    status, text = await replica.probe("/readyz")
    assert (status == 200) is (text == "ok\n")
    return text.strip()


async def test_it_is_ready_when_all_is_there(replica: Replica) -> None:
    assert await readiness(replica) == "ok"
    assert await replica.probe("/healthz") == (200, "ok\n")


@pytest.mark.parametrize("resource", ["resourceslices", "deviceclasses"])
async def test_it_is_not_ready_before_the_cluster_is_known(site: Site, resource: str) -> None:
    site.server.faults.add(Refusal(code=503), Target(resources={resource}), times=None)
    async with site.replica(wait=False) as replica:
        for _ in range(20):
            assert "have not been read yet" in await readiness(replica)
        site.server.faults.clear()
        await until(lambda: _reads(replica, "ok"))


async def test_quotas_are_not_waited_for(site: Site) -> None:
    site.server.faults.add(Refusal(code=403), Target(resources={"resourcequotas"}), times=None)
    async with site.replica() as replica:
        assert (await replica.post(review_of(classic_pod())))["allowed"]


async def test_it_is_not_ready_without_a_certificate_and_then_it_is(site: Site) -> None:
    async with site.replica(wait=False, certificate_dir=site.volume.folder / "none") as replica:
        await until(lambda: _reads(replica, "no certificate in"))
    (site.volume.folder / "..data").unlink()
    async with site.replica(wait=False) as replica:
        await until(lambda: _reads(replica, "no certificate in"))
        site.volume.put(site.authority.pair())
        await until(lambda: _reads(replica, "ok"))
        assert (await replica.post(review_of(classic_pod())))["allowed"]


async def test_it_is_not_ready_with_a_certificate_that_ran_out(site: Site) -> None:
    site.volume.put(site.authority.pair(ends_in_s=3), site.authority.pem)
    async with site.replica(wait=False) as replica:
        await until(lambda: _reads(replica, "the certificate has expired"))
        site.volume.put(site.authority.pair(), site.authority.pem)
        await until(lambda: _reads(replica, "ok"))


async def test_it_is_not_ready_when_its_authority_ran_out(site: Site) -> None:
    site.volume.put(site.authority.pair(), Authority(ends_in_s=3).pem)
    async with site.replica(wait=False) as replica:
        await until(lambda: _reads(replica, "the certificate's authority has expired"))
        site.volume.put(site.authority.pair(), site.authority.pem)
        await until(lambda: _reads(replica, "ok"))


async def test_it_is_not_ready_long_after_the_server_went_away(site: Site) -> None:
    async with site.replica(contact_patience_s=0.05) as replica:
        await site.server.stop()
        await until(lambda: _reads(replica, "no contact to the API server"))
        await site.server.start()
        await until(lambda: _reads(replica, "ok"))


async def test_pods_are_created_while_certificates_come_and_go(
    site: Site, replica: Replica
) -> None:
    swaps, wrong = 6, site.authority.pair()
    over = asyncio.Event()
    created = asyncio.Semaphore(0)

    async def create_pods(worker: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            await site.create_pod(classic_pod(f"pod-{worker}-{number}"))
            assert (await replica.post(review_of(classic_pod())))["allowed"]
            created.release()

    async def metric_is(name: str, value: float) -> bool:
        return await replica.metric(name) == value

    async with asyncio.TaskGroup() as group:
        for worker in range(3):
            group.create_task(create_pods(worker))
        for number in range(swaps):
            good = site.authority.pair(ends_in_s=4000 + 1000 * number)
            site.volume.put(replace(good, key=wrong.key), site.authority.pem)
            await until(
                lambda: metric_is(
                    "casaba_webhook_certificate_swap_errors_total",
                    number + 1,  # noqa: B023 - awaited at once
                )
            )
            site.volume.put(good, site.authority.pem)
            await until(lambda: metric_is("casaba_webhook_certificate_swaps_total", number + 2))  # noqa: B023
            for _ in range(5):
                await created.acquire()
        over.set()
    assert await replica.metric("casaba_webhook_certificate_expiry_timestamp_seconds") > 0
    assert await readiness(replica) == "ok"


async def test_requests_in_work_are_finished_at_the_end(site: Site) -> None:
    site.server.faults.add(Slowness(delay_s=0.3), Target(verbs={"create"}, resources=TEMPLATES))
    async with AsyncExitStack() as after, asyncio.TaskGroup() as group:
        async with serving_webhook(site.settings) as running:
            replica = await after.enter_async_context(Replica.of(running, site.authority))
            await until(lambda: _reads(replica, "ok"))
            answer = group.create_task(replica.post(review_of(classic_pod())))
            await until(lambda: _met(site))
    assert answer.result()["allowed"]


def arguments(site: Site, **flags: str) -> list[str]:
    settings = site.settings
    given = {
        "kubeconfig": str(settings.kubeconfig),
        "address": settings.address,
        "metrics-address": settings.metrics_address,
        "certificate-dir": str(settings.certificate_dir),
        **flags,
    }
    return [part for name, value in given.items() for part in (f"--{name}", value)]


@asynccontextmanager
async def started(site: Site, **flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    program = "import sys; from casaba.cli.webhook import main; sys.exit(main(sys.argv[1:]))"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments(site, **flags),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def logged(process: asyncio.subprocess.Process, event: str) -> dict[str, Any]:
    """The next line of an event."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while line := await process.stderr.readline():
            entry: dict[str, Any] = json.loads(line)
            if entry["event"] == event:
                return entry
    raise AssertionError(f"the log ended without {event}")


async def test_sigterm_drains_and_ends(site: Site) -> None:
    async with started(site, drain="0.2") as process:
        entry = await logged(process, "webhook.listening")
        assert entry["port"]
        process.send_signal(signal.SIGTERM)
        await logged(process, "webhook.draining")
        async with asyncio.timeout(30):
            assert await process.wait() == 0


async def test_a_second_sigterm_does_not_wait(site: Site) -> None:
    async with started(site, drain="600") as process:
        await logged(process, "webhook.listening")
        process.send_signal(signal.SIGTERM)
        await logged(process, "webhook.draining")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await process.wait() == 0


async def test_while_it_drains_it_answers_but_is_not_ready(site: Site) -> None:
    async with site.replica() as replica:
        replica.running.drain()
        assert await readiness(replica) == "not ready: the webhook is ending"
        url, content = f"{replica.url}/mutate", review_of(classic_pod())
        async with replica.session.post(url, data=content) as answer:
            assert (await answer.json())["response"]["allowed"]
            assert answer.headers["Connection"] == "close"


async def test_a_fault_of_ours_is_a_refusal_and_logged_without_words_of_the_pod(
    site: Site,
    replica: Replica,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("secret of the pod")

    monkeypatch.setattr("casaba.services.webhook.plans.convert_pod", broken)
    response = await replica.post(review_of(classic_pod()))
    assert (response["uid"], response["status"]["code"]) == ("u-1", 500)
    assert "KeyError" in response["status"]["message"]
    (entry,) = [vars(it) for it in caplog.records if it.message == "review.failed"]
    assert entry["error"] == "KeyError"
    assert "secret" not in str(entry)
    assert entry["levelno"] == logging.ERROR
    assert await replica.metric("casaba_webhook_reviews_total", outcome="failed") == 1


def parsed(*flags: str) -> WebhookSettings:
    return settings_from(_parser().parse_args(flags))


def test_flags_become_settings() -> None:
    assert parsed() == WebhookSettings()
    told = parsed(
        *("--resource-mem", "example.com/mem", "--default-cores", "10", "--body-limit", "1Mi"),
        *("--tls-minimum", "1.2", "--gpu-core-policy", "force", "--refuse-oversized"),
    )
    assert told.conversion.memory_resource == "example.com/mem"
    assert (told.conversion.default_cores_percent, told.conversion.refuse_oversized) == (10, True)
    assert (told.body_limit_bytes, told.tls_minimum) == (1 << 20, "1.2")
    assert told.conversion.core_policy == "force"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--drain", "-1"),
        ("--review-limit", "0"),
        ("--certificate-check", "nan"),
        ("--body-limit", "much"),
        ("--default-cores", "101"),
    ],
)
def test_values_that_make_no_sense_are_named(flag: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        parsed(flag, value)


async def _reads(replica: Replica, text: str) -> bool:
    return text in await readiness(replica)


async def _met(site: Site) -> bool:
    return site.server.faults.met > 0
