"""A program that supplies credentials: what it is told, when it runs, and how it can fail."""

import asyncio
import json
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import NODES, ExecPlugin, KubeClient, KubeConfig, KubeConfigError, Unauthorized
from casaba.kube import exec_credentials as under_test
from casaba.kube.exec_credentials import ExecCredentials
from casaba.simulation.authority import ClusterAuthority
from tests.component.kube.recording_server import RecordingServer, Reply
from tests.component.kube.test_tls import asked_as

pytestmark = pytest.mark.timeout(30)

V1 = "client.authentication.k8s.io/v1"


class Plugin:
    """A shell script that notes its runs and prints what the test puts into a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plugin"
        self.script(f"cat {folder}/answer")

    def script(self, last_lines: str) -> None:
        self.path.write_text(
            f'#!/bin/sh\necho "$@" >> {self.folder}/runs\n'
            f'printf %s "$KUBERNETES_EXEC_INFO" > {self.folder}/told\n{last_lines}\n'
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def answers(self, api_version: str = V1, kind: str = "ExecCredential", **status: Any) -> None:
        document = {"apiVersion": api_version, "kind": kind, "status": status}
        (self.folder / "answer").write_text(json.dumps(document))

    def runs(self) -> list[str]:
        runs = self.folder / "runs"
        return runs.read_text().splitlines() if runs.exists() else []

    def told(self) -> Any:
        return json.loads((self.folder / "told").read_text())

    def entry(self, **changes: Any) -> ExecPlugin:
        entry = ExecPlugin(api_version=V1, command=str(self.path), interactive_mode="Never")
        return replace(entry, **changes)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def config(server: RecordingServer, entry: ExecPlugin) -> KubeConfig:
    return KubeConfig(origin="test", server=server.url, exec_plugin=entry)


async def test_the_token_is_used_and_the_program_told_what_was_asked_for(
    server: RecordingServer, plugin: Plugin
) -> None:
    plugin.script(f'test "$A" = b && cat {plugin.folder}/answer')
    plugin.answers(token="one")
    entry = plugin.entry(arguments=("x", "y"), environment={"A": "b"}, cluster={"server": "s"})
    async with KubeClient(config(server, entry)) as client:
        for _ in range(2):
            await client.get(NODES.decoded_as(dict), "a")
    sent = [asked.headers["Authorization"] for asked in server.asked]
    assert sent == ["Bearer one"] * 2
    assert plugin.runs() == ["x y"]
    assert plugin.told() == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": {"server": "s"}},
    }


async def test_many_requests_at_once_run_it_once(server: RecordingServer, plugin: Plugin) -> None:
    plugin.answers(token="one")
    async with KubeClient(config(server, plugin.entry())) as client:
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(client.get(NODES.decoded_as(dict), "a"))
    assert len(plugin.runs()) == 1
    assert len(server.asked) == 10


async def test_a_refused_token_is_replaced_once_and_then_believed(
    server: RecordingServer, plugin: Plugin
) -> None:
    plugin.answers(token="one")
    async with KubeClient(config(server, plugin.entry())) as client:
        await client.get(NODES.decoded_as(dict), "a")
        plugin.answers(token="two")
        server.replies.append(Reply({"code": 401}, code=401))
        await client.get(NODES.decoded_as(dict), "a")
        server.replies.append(Reply({"code": 401}, code=401))
        with pytest.raises(Unauthorized):
            await client.get(NODES.decoded_as(dict), "a")
    sent = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in server.asked]
    assert sent == ["one", "one", "two", "two"]
    assert len(plugin.runs()) == 3


async def test_a_credential_is_replaced_shortly_before_its_end(plugin: Plugin) -> None:
    now_s = time.time()
    clock = [now_s]
    credentials = ExecCredentials(plugin.entry(), "test", now_s=lambda: clock[0])
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s + 600))
    plugin.answers(token="one", expirationTimestamp=end)
    for clock[0], runs in ((now_s, 1), (now_s + 530, 1), (now_s + 545, 2), (now_s + 546, 2)):
        await credentials.current()
        assert len(plugin.runs()) == runs, clock[0] - now_s
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s + 1200))
        plugin.answers(token="two", expirationTimestamp=end)


async def test_a_client_certificate_from_a_program(plugin: Plugin) -> None:
    authority = ClusterAuthority.create()
    async with RecordingServer(authority.server_context(["127.0.0.1"])) as server:
        certificate, key = authority.client_certificate("plugged-in", ())
        plugin.answers(clientCertificateData=certificate.decode(), clientKeyData=key.decode())
        access = replace(config(server, plugin.entry()), authority_pem=authority.authority_pem)
        assert await asked_as(access, server) == "plugged-in"


async def test_a_token_of_the_kubeconfig_goes_before_the_program(
    server: RecordingServer, plugin: Plugin
) -> None:
    async with KubeClient(replace(config(server, plugin.entry()), token="t")) as client:
        await client.get(NODES.decoded_as(dict), "a")
    assert server.asked[0].headers["Authorization"] == "Bearer t"
    assert plugin.runs() == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("secret", "printed no ExecCredential as JSON"),
        ({"kind": "Pod", "apiVersion": V1}, "answered with '.*/v1' 'Pod'; the kubeconfig wants"),
        (
            {"kind": "ExecCredential", "apiVersion": f"{V1}beta1", "status": {"token": "secret"}},
            "answered with 'client.authentication.k8s.io/v1beta1' .* wants '.*/v1'",
        ),
        ({"kind": "ExecCredential", "apiVersion": V1}, "answered without a status"),
        (
            {"kind": "ExecCredential", "apiVersion": V1, "status": {}},
            "gave neither a token nor a client certificate",
        ),
        (
            {"kind": "ExecCredential", "apiVersion": V1, "status": {"clientKeyData": "secret"}},
            "gave one of clientCertificateData and clientKeyData, not both",
        ),
        (
            {
                "kind": "ExecCredential",
                "apiVersion": V1,
                "status": {"token": "secret", "expirationTimestamp": "soon"},
            },
            "gave 'soon' as expirationTimestamp, no time",
        ),
    ],
)
async def test_an_answer_that_is_no_credential_fails_and_nothing_is_asked(
    server: RecordingServer, plugin: Plugin, answer: Any, message: str
) -> None:
    (plugin.folder / "answer").write_text(answer if isinstance(answer, str) else json.dumps(answer))
    async with KubeClient(config(server, plugin.entry())) as client:
        with pytest.raises(KubeConfigError, match=message) as caught:
            await client.get(NODES, "a")
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith(f"test: exec plugin '{plugin.path}' ")
    assert not server.asked


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo secret; exit 3", "ended with exit code 3; it may have said why on stderr"),
        ("sleep 60 & wait", "did not end within 0.3 s"),
        ("head -c 2000000 /dev/zero", "printed more than 1048576 bytes"),
    ],
)
async def test_a_program_that_fails_or_hangs_is_ended_and_named(
    plugin: Plugin, script: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in script:
        monkeypatch.setattr(under_test, "RUN_LIMIT_S", 0.3)
    plugin.script(script)
    with pytest.raises(KubeConfigError, match=message) as caught:
        await ExecCredentials(plugin.entry(), "test").current()
    assert "secret" not in str(caught.value)


async def test_a_program_that_is_not_there_says_where_to_get_it() -> None:
    entry = ExecPlugin(api_version=V1, command="not-installed-here", install_hint="get it there")
    with pytest.raises(KubeConfigError, match=r"can't be started: No such file .*; get it there"):
        await ExecCredentials(entry, "test").current()


async def test_one_that_must_ask_a_person_needs_a_terminal(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(KubeConfigError, match=r"wants to ask a person .*Always.*at a terminal"):
        await ExecCredentials(plugin.entry(interactive_mode="Always"), "test").current()
    assert plugin.runs() == []
