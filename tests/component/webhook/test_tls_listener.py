"""The listener's certificate, replaced by good and bad pairs while clients call."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from casaba.errors import HostError
from casaba.net.certificate_pair import CertificateFiles, CertificatePair, TlsVersion
from casaba.net.tls_listener import TlsListener
from tests.component.webhook.certificates import (
    LOOPBACK,
    SERVICE,
    Authority,
    Pair,
    SecretVolume,
    encrypted,
    rsa_key,
)

AUTHORITY = Authority()


@dataclass
class Heard:
    """What the listener told of certificates."""

    taken_pairs: list[CertificatePair] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def taken(self, pair: CertificatePair) -> None:
        self.taken_pairs.append(pair)

    def refused(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass
class Served:
    """A listener that answers `ok`, and the files that it looks at."""

    listener: TlsListener
    volume: SecretVolume
    heard: Heard

    def swap(self, pair: Pair, authority: bytes | None = None) -> None:
        """New files, and a look at them."""
        self.volume.put(pair, authority)
        self.listener.look()

    async def serial(self, **named: Any) -> int:
        """Of the certificate in a new handshake."""
        return await serial_at(self.listener.port, AUTHORITY, **named)


@asynccontextmanager
async def served(
    folder: Path, pair: Pair | None, *, minimum_version: TlsVersion = "1.3"
) -> AsyncIterator[Served]:
    volume, heard = SecretVolume(folder), Heard()
    if pair is not None:
        volume.put(pair)
    app = web.Application()
    app.router.add_get("/", _ok)
    listener = TlsListener(
        f"{LOOPBACK}:0",
        app,
        CertificateFiles(folder=folder),
        heard,
        minimum_version=minimum_version,
        look_every_s=0.01,
        shutdown_s=1,
    )
    async with listener:
        yield Served(listener, volume, heard)


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def serial_at(
    port: int,
    authority: Authority,
    *,
    name: str | None = SERVICE,
    maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> int:
    context = authority.client_context()
    context.maximum_version = maximum
    context.check_hostname = name is not None
    _, writer = await asyncio.open_connection(
        LOOPBACK, port, ssl=context, server_hostname=name or ""
    )
    tls = writer.get_extra_info("ssl_object")
    der = tls.getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


def bad_pairs() -> dict[str, tuple[Pair, str]]:
    good, other = AUTHORITY.pair(), AUTHORITY.pair()
    client = ExtendedKeyUsageOID.CLIENT_AUTH
    return {
        "not a pair": (Pair(good.certificate, other.key), "does not belong"),
        "other kind": (
            Pair(good.certificate, AUTHORITY.pair(key=rsa_key()).key),
            "does not belong|can't be read",
        ),
        "garbage key": (Pair(good.certificate, b"garbage"), "can't be read as PEM"),
        "garbage certificate": (Pair(b"\xff\x00", good.key), "can't be read as PEM"),
        "empty": (Pair(b"", b""), "can't be read as PEM"),
        "half": (Pair(good.certificate[:200], good.key), "can't be read as PEM"),
        "encrypted": (encrypted(good), "can't be read as PEM"),
        "expired": (AUTHORITY.pair(ends_in_s=-10), "has expired"),
        "of the future": (AUTHORITY.pair(begins_in_s=1800), "not valid yet"),
        "a client's": (AUTHORITY.pair(use=client), "not a server's"),
    }


@pytest.mark.parametrize("kind", bad_pairs())
async def test_a_bad_pair_is_told_once_and_the_one_before_is_served(
    kind: str, tmp_path: Path
) -> None:
    good, (bad, reason) = AUTHORITY.pair(), bad_pairs()[kind]
    async with served(tmp_path, good) as it:
        for _ in range(3):
            it.swap(bad)
        assert await it.serial() == good.serial
        assert len(it.heard.reasons) == 1
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(it.heard.reasons[0])
        assert it.listener.trouble() is None
        better = AUTHORITY.pair()
        it.swap(better)
        assert await it.serial() == better.serial


@pytest.mark.parametrize("version", ["1.2", "1.3"])
async def test_both_kinds_of_keys_are_served(tmp_path: Path, version: TlsVersion) -> None:
    maximum = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
    async with served(tmp_path, AUTHORITY.pair(), minimum_version=version) as it:
        for pair in (AUTHORITY.pair(key=rsa_key()), AUTHORITY.pair()):
            it.swap(pair)
            for name in (SERVICE, LOOPBACK, None):
                assert await it.serial(name=name, maximum=maximum) == pair.serial


async def test_tls_1_2_is_refused_unless_it_is_set(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.pair()) as it:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await it.serial(maximum=ssl.TLSVersion.TLSv1_2)
        assert await it.serial()


async def test_without_a_pair_it_listens_and_waits_for_one(tmp_path: Path) -> None:
    async with served(tmp_path, None) as it:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await it.serial()
        assert "no certificate in" in (it.listener.trouble() or "")
        assert "tls.crt" in (it.listener.trouble() or "")
        pair = AUTHORITY.pair()
        it.swap(pair)
        assert it.listener.trouble() is None
        assert await it.serial() == pair.serial


async def test_files_that_vanish_leave_the_pair_that_was_loaded(tmp_path: Path) -> None:
    pair = AUTHORITY.pair()
    async with served(tmp_path, pair) as it:
        (tmp_path / "..data").unlink()
        it.listener.look()
        assert await it.serial() == pair.serial
        assert len(it.heard.reasons) == 1


async def test_files_written_one_after_the_other_are_taken_when_they_fit(tmp_path: Path) -> None:
    first, second = AUTHORITY.pair(), AUTHORITY.pair()
    for pair in (first,):
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
    async with served(tmp_path, None) as it:
        (tmp_path / "tls.crt").write_bytes(second.certificate)
        it.listener.look()
        assert await it.serial() == first.serial
        (tmp_path / "tls.key").write_bytes(second.key)
        it.listener.look()
        assert await it.serial() == second.serial


async def test_a_pair_of_the_future_is_taken_when_its_time_has_come(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.pair()) as it:
        soon = AUTHORITY.pair(begins_in_s=1)
        it.swap(soon)
        async with asyncio.timeout(20):
            while await it.serial() != soon.serial:
                it.listener.look()
        assert len(it.heard.reasons) <= 1


async def test_expiry_is_told_of_the_certificate_and_of_its_authority(tmp_path: Path) -> None:
    now_s = time.time()
    async with served(tmp_path, AUTHORITY.pair(ends_in_s=3600)) as it:
        assert it.heard.taken_pairs[0].expires_at_s == pytest.approx(now_s + 3600, abs=30)
        assert it.heard.taken_pairs[0].authority_expires_at_s is None
        assert it.listener.trouble(lambda: now_s + 4000) == "the certificate has expired"
        it.swap(AUTHORITY.pair(ends_in_s=3600), Authority(ends_in_s=1800).pem)
        told = it.listener.trouble(lambda: now_s + 2000)
        assert told == "the certificate's authority has expired"
        both = Authority(ends_in_s=1800).pem + Authority(ends_in_s=7200).pem
        it.swap(AUTHORITY.pair(ends_in_s=3600), both)
        assert it.listener.trouble(lambda: now_s + 2000) is None
        it.swap(AUTHORITY.pair(), b"garbage")
        assert it.listener.trouble() is None


async def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.pair()) as it:
        listener = TlsListener(
            f"{LOOPBACK}:{it.listener.port}",
            web.Application(),
            CertificateFiles(folder=tmp_path),
            it.heard,
            look_every_s=1,
            shutdown_s=1,
        )
        with pytest.raises(HostError, match=f"can't listen on {LOOPBACK}:{it.listener.port}"):
            await listener.__aenter__()


async def test_no_connection_is_lost_while_pairs_come_and_go(tmp_path: Path) -> None:
    first = AUTHORITY.pair()
    async with served(tmp_path, first) as it:
        context = AUTHORITY.client_context()
        answered, over = asyncio.Semaphore(0), asyncio.Event()
        address = f"https://{LOOPBACK}:{it.listener.port}/"

        async def keep_asking(*, anew: bool) -> None:
            connector = aiohttp.TCPConnector(ssl=context, force_close=anew, limit=1)
            async with aiohttp.ClientSession(connector=connector) as session:
                while not over.is_set():
                    async with session.get(address) as answer:
                        assert await answer.text() == "ok"
                    answered.release()

        async def wait_for_answers(count: int) -> None:
            for _ in range(count):
                await answered.acquire()

        bad = [pair for pair, _ in bad_pairs().values()]
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            files = group.create_task(it.listener.follow_files())
            for anew in (False, False, True, True, True):
                group.create_task(keep_asking(anew=anew))
            last = first
            for wrong in bad:
                it.volume.put(wrong)
                await wait_for_answers(20)
                last = AUTHORITY.pair()
                it.volume.put(last)
                await wait_for_answers(20)
            while await it.serial() != last.serial:
                await wait_for_answers(1)
            over.set()
            files.cancel()


async def test_a_connection_outlives_the_certificate_of_its_beginning(tmp_path: Path) -> None:
    opened: list[None] = []

    async def note(*_: object) -> None:
        opened.append(None)

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(note)
    async with served(tmp_path, AUTHORITY.pair()) as it:
        connector = aiohttp.TCPConnector(ssl=AUTHORITY.client_context(), limit=1)
        async with aiohttp.ClientSession(connector=connector, trace_configs=[trace]) as session:
            for _ in range(3):
                async with session.get(f"https://{LOOPBACK}:{it.listener.port}/") as answer:
                    assert await answer.text() == "ok"
                it.swap(AUTHORITY.pair())
    assert len(opened) == 1
