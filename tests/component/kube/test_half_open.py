"""A peer that is gone without a word, between two network namespaces of our own."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVER, CLIENT = "10.255.77.1", "10.255.77.2"
PORT = 8001

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs the ip command (iproute2)"),
]


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


@contextmanager
def namespace(name: str) -> Iterator[str]:
    try:
        ip("netns", "add", name)
    except AssertionError as error:
        pytest.skip(f"this machine lets nobody make network namespaces: {error}")
    try:
        yield name
    finally:
        ip("netns", "delete", name)


@contextmanager
def python(namespace: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = ["ip", "netns", "exec", namespace, sys.executable, *arguments]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:  # `ip netns exec` becomes the program, so this is its pid
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def two_namespaces() -> Iterator[tuple[str, str]]:
    """Server's and client's, joined by one cable named `cable` on both sides."""
    with ExitStack() as stack:
        pair = [stack.enter_context(namespace(f"half-open-{os.getpid()}-{s}")) for s in "sc"]
        server, client = pair
        ip("-n", server, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", client)
        for place, address in ((server, SERVER), (client, CLIENT)):
            ip("-n", place, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", place, "link", "set", "cable", "up")
        yield server, client


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_silent_watch_whose_peer_vanished_is_left_within_ten_seconds(
    two_namespaces: tuple[str, str],
) -> None:
    server_place, client_place = two_namespaces
    model, follower = (f"tests.component.kube.{n}" for n in ("model_server", "half_open_client"))
    with ExitStack() as stack:
        server = stack.enter_context(python(server_place, "-m", model, SERVER, str(PORT)))
        assert line(server) == "serving"
        url = f"http://{SERVER}:{PORT}"
        client = stack.enter_context(python(client_place, "-m", follower, url))
        assert [line(client), line(client)] == ["Added", "Synced"]
        assert line(server) == "watched"
        ip("-n", server_place, "link", "set", "cable", "down")
        cut_at_s = time.monotonic()
        assert line(client).startswith("lost: watch /api/v1/nodes: no answer from")
        assert time.monotonic() - cut_at_s < 10
