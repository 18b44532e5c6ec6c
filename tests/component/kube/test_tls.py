"""Who we trust and how we prove who we are, over real TLS."""

import asyncio
import base64
import contextlib
import gc
import json
import socket
import threading
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import NODES, KubeClient, KubeConfig, KubeConfigError, Untrusted, load_config
from casaba.simulation.authority import ClusterAuthority
from tests.component.kube.recording_server import RecordingServer

pytestmark = pytest.mark.timeout(20)


@pytest.fixture(scope="module")
def authority() -> ClusterAuthority:
    return ClusterAuthority.create()


@pytest.fixture
async def server(authority: ClusterAuthority) -> AsyncIterator[RecordingServer]:
    async with RecordingServer(authority.server_context(["127.0.0.1"])) as server:
        yield server


def test_a_watch_that_is_dropped_leaves_no_connection(authority: ClusterAuthority) -> None:
    """Of a peer that is not there any more to say good-bye, as TLS would like it."""
    ends = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(
            target=_answer_and_fall_silent, args=(authority, listening, ends)
        )
        serving.start()
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                asyncio.run(_watch_and_drop(authority, listening.getsockname()[1]))
                gc.collect()
        finally:
            ends.set()
            serving.join()
    assert [str(one.message) for one in told] == []


def _answer_and_fall_silent(
    authority: ClusterAuthority, listening: socket.socket, ends: threading.Event
) -> None:
    context = authority.server_context(["127.0.0.1"])
    with listening.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        ends.wait()


async def _watch_and_drop(authority: ClusterAuthority, port: int) -> None:
    config = KubeConfig(
        origin="test",
        server=f"https://127.0.0.1:{port}",
        authority_pem=authority.authority_pem,
    )
    async with KubeClient(config) as client:
        stream = await client.open_watch(NODES, resource_version="1", timeout_s=60)
        stream.close()


def kubeconfig(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> KubeConfig:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(document))
    return load_config(path)


async def asked_as(config: KubeConfig, server: RecordingServer) -> str | None:
    """The common name that the server saw."""
    async with KubeClient(config) as client:
        await client.get(NODES.decoded_as(dict), "a")
    certificate = server.asked[-1].peer_certificate
    return dict(pair[0] for pair in certificate["subject"])["commonName"] if certificate else None


async def test_a_client_certificate_as_data_or_files(
    authority: ClusterAuthority, server: RecordingServer, tmp_path: Path
) -> None:
    certificate, key = authority.client_certificate("agent", ())
    (tmp_path / "ca").write_bytes(authority.authority_pem.encode())
    (tmp_path / "my.crt").write_bytes(certificate)
    (tmp_path / "my.key").write_bytes(key)
    by_data = kubeconfig(
        tmp_path / "by-data",
        {
            "server": server.url,
            "certificate-authority-data": _text(authority.authority_pem.encode()),
        },
        {
            "client-certificate-data": _text(certificate),
            "client-key-data": _text(key),
        },
    )
    by_file = kubeconfig(
        tmp_path / "by-file",
        {"server": server.url, "certificate-authority": "ca"},
        {"client-certificate": "my.crt", "client-key": str(tmp_path / "my.key")},
    )
    assert await asked_as(by_data, server) == "agent"
    assert await asked_as(by_file, server) == "agent"


async def test_a_server_of_another_authority_is_not_trusted_unless_told_so(
    server: RecordingServer, tmp_path: Path
) -> None:
    other = {
        "server": server.url,
        "certificate-authority-data": _text(ClusterAuthority.create().authority_pem.encode()),
    }
    with pytest.raises(Untrusted, match=r"get /api/v1/nodes/a: no TLS with .*certificate-auth"):
        await asked_as(kubeconfig(tmp_path / "k", other, {}), server)
    insecure = {"server": server.url, "insecure-skip-tls-verify": True}
    assert await asked_as(kubeconfig(tmp_path / "k", insecure, {}), server) is None


async def test_the_name_in_the_certificate_can_be_given(
    authority: ClusterAuthority, tmp_path: Path
) -> None:
    async with RecordingServer(authority.server_context(["kubernetes.default"])) as server:
        cluster = {
            "server": server.url,
            "certificate-authority-data": _text(authority.authority_pem.encode()),
        }
        with pytest.raises(Untrusted):
            await asked_as(kubeconfig(tmp_path / "k", cluster, {}), server)
        cluster["tls-server-name"] = "kubernetes.default"
        await asked_as(kubeconfig(tmp_path / "k", cluster, {}), server)


@pytest.mark.parametrize("key", ["another's", "encrypted"])
def test_a_key_that_does_not_fit_names_the_file(
    authority: ClusterAuthority, tmp_path: Path, key: str
) -> None:
    encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----"
    config = kubeconfig(
        tmp_path / "k",
        {
            "server": "https://localhost",
            "certificate-authority-data": _text(authority.authority_pem.encode()),
        },
        {
            "client-certificate-data": _text(authority.client_certificate("a", ())[0]),
            "client-key-data": _text(
                encrypted if key == "encrypted" else authority.client_certificate("b", ())[1]
            ),
        },
    )
    with pytest.raises(KubeConfigError, match=r"k \(context 'c'\): client-certificate and client"):
        KubeClient(config)


def test_an_authority_that_is_no_pem_names_the_file(tmp_path: Path) -> None:
    cluster = {"server": "https://localhost", "certificate-authority-data": _text(b"nonsense")}
    with pytest.raises(KubeConfigError, match="certificate-authority holds no PEM certificate"):
        KubeClient(kubeconfig(tmp_path / "k", cluster, {}))


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


async def test_files_that_are_replaced_are_taken_up_for_new_connections(
    authority: ClusterAuthority, server: RecordingServer, tmp_path: Path
) -> None:
    server.close_connections = True
    files = {name: tmp_path / name for name in ("ca", "my.crt", "my.key")}
    first, second = (authority.client_certificate(name, ()) for name in ("first", "second"))
    files["ca"].write_bytes(authority.authority_pem.encode())
    files["my.crt"].write_bytes(first[0])
    files["my.key"].write_bytes(first[1])
    config = kubeconfig(
        tmp_path / "k",
        {"server": server.url, "certificate-authority": "ca"},
        {"client-certificate": "my.crt", "client-key": "my.key"},
    )
    async with KubeClient(config) as client:
        assert await seen_name(client, server) == "first"
        replace_file(files["my.crt"], second[0])
        assert await seen_name(client, server) == "first"  # the key is still the other's
        replace_file(files["my.key"], second[1])
        assert await seen_name(client, server) == "second"
        replace_file(files["ca"], ClusterAuthority.create().authority_pem.encode())
        with pytest.raises(Untrusted):
            await seen_name(client, server)
        files["ca"].unlink()
        replace_file(files["ca"], authority.authority_pem.encode())
        assert await seen_name(client, server) == "second"


async def seen_name(client: KubeClient, server: RecordingServer) -> str:
    await client.get(NODES.decoded_as(dict), "a")
    certificate = server.asked[-1].peer_certificate
    assert certificate is not None
    return str(dict(pair[0] for pair in certificate["subject"])["commonName"])


def replace_file(path: Path, content: bytes) -> None:
    """As the kubelet and careful programs do it."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


async def test_a_proxy_in_front_of_a_server_with_tls(
    authority: ClusterAuthority, server: RecordingServer, tmp_path: Path
) -> None:
    async with Tunnelling() as proxy:
        config = kubeconfig(
            tmp_path / "k",
            {
                "server": server.url,
                "certificate-authority-data": _text(authority.authority_pem.encode()),
                "proxy-url": proxy.url,
            },
            {"token": "secret"},
        )
        async with KubeClient(config) as client:
            await client.get(NODES.decoded_as(dict), "a")
        assert proxy.asked_for == [server.url.removeprefix("https://")]
    assert server.asked[-1].headers["Authorization"] == "Bearer secret"


class Tunnelling:
    """An HTTP proxy that knows CONNECT."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    async def __aenter__(self) -> "Tunnelling":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split(" ")[1]
        self.asked_for.append(target)
        host, _, port = target.rpartition(":")
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(copied(reader, there_writer))
            group.create_task(copied(there_reader, writer))


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()
