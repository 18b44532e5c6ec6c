"""Two network namespaces and a cable: unplugged, a peer is gone without a word (root)."""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVER, CLIENT = "10.255.78.1", "10.255.78.2"
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class VanishingLink:
    """The cable, and what stands at its ends."""

    listener: socket.socket
    """At the server's end; whoever accepts from it may connect anywhere."""

    entering_client: tuple[str, ...]
    """Command prefix that runs a program at the client's end."""

    server_namespace: str

    @property
    def address(self) -> str:
        """Of the listener, as the client sees it."""
        return f"{SERVER}:{self.listener.getsockname()[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """For a Python program of ours."""
        return os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def cut(self) -> None:
        """Unplug."""
        ip("-n", self.server_namespace, "link", "set", "cable", "down")

    def mend(self) -> None:
        """Plug in again."""
        ip("-n", self.server_namespace, "link", "set", "cable", "up")


@contextmanager
def vanishing_link() -> Iterator[VanishingLink]:
    """Needs root and the ip command; skips where there are no network namespaces to be had."""
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("only root may make network namespaces, with the ip command (iproute2)")
    with ExitStack() as stack:
        pair = [stack.enter_context(namespace(f"vanishing-{os.getpid()}-{s}")) for s in "sc"]
        server, client = pair
        ip("-n", server, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", client)
        for place, address in ((server, SERVER), (client, CLIENT)):
            ip("-n", place, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", place, "link", "set", "cable", "up")
        listener = stack.enter_context(_listener_in(Path("/run/netns") / server))
        yield VanishingLink(listener, ("ip", "netns", "exec", client), server)


def ip(*arguments: str) -> None:
    """Run the ip command, which must succeed."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A network namespace; skips where nobody may make one."""
    try:
        ip("netns", "add", name)
    except AssertionError as error:
        pytest.skip(f"this machine lets nobody make network namespaces: {error}")
    try:
        yield name
    finally:
        ip("netns", "delete", name)


def _listener_in(network_namespace: Path) -> socket.socket:
    """A socket stays in the namespace of the thread that made it; that thread ends with its own."""
    made: list[socket.socket] = []
    thread = threading.Thread(target=lambda: made.append(_listener_inside(network_namespace)))
    thread.start()
    thread.join()
    return made[0]


def _listener_inside(network_namespace: Path) -> socket.socket:
    with network_namespace.open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return socket.create_server((SERVER, 0))
