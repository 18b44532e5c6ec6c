"""A process under the guard (or beside it) whose driver calls a test makes one by one."""

import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = Path(__file__).with_name("tenant_program.py")
SUCCESS, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 2, 3
ERRNO_MARK = 77
ON_DEVICE = 1


class ByValue(bytes):
    """A structure that a function takes itself, not by its address."""


def encode(argument: int | bytes | None) -> Any:
    """An argument for tenant_program.py."""
    if isinstance(argument, ByValue):
        return {"by_value": argument.hex()}
    return argument.hex() if isinstance(argument, bytes) else argument


@dataclass(frozen=True)
class Reply:
    """What a driver function answered."""

    result: int
    buffers: tuple[bytes, ...]

    def number(self, which: int = 0) -> int:
        """What a buffer holds, as one little-endian number."""
        return int.from_bytes(self.buffers[which], "little")


class Tenant:
    """One process. Under the guard, every call is checked to leave errno as it was."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it; it finds the driver and the guard through its environment."""
        self.guarded = "LD_PRELOAD" in environment
        self.printed: str | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            printed = self.end()
            raise AssertionError(f"the tenant ended with {self.process.returncode}: {printed}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def find(self, name: str, *arguments: int | bytes | None, **door: int) -> Reply | None:
        """Call a driver function; None when the door does not know the name."""
        values = [encode(argument) for argument in arguments]
        reply = self._ask({"do": "call", "name": name, "arguments": values} | door)
        if "absent" in reply:
            return None
        if self.guarded:
            assert reply["errno"] == ERRNO_MARK, f"{name} changed errno to {reply['errno']}"
        buffers = tuple(bytes.fromhex(b) for b in reply["buffers"])
        return Reply(reply["result"], buffers)

    def call(self, name: str, *arguments: int | bytes | None, **door: int) -> Reply:
        """Call a driver function: numbers are passed as 64-bit words, bytes as a buffer."""
        reply = self.find(name, *arguments, **door)
        assert reply is not None, f"{name} is not there"
        return reply

    def address(self, name: str, **door: int) -> int | None:
        """Where a name leads to: dlsym on the driver's handle, or cuGetProcAddress_v2."""
        reply = self._ask({"do": "address", "name": name} | door)
        address: int | None = reply["address"]
        return address

    def search(self, name: str, *, version: str | None = None, in_driver: bool = False) -> int:
        """dlsym, or dlvsym, with RTLD_DEFAULT or libcuda's handle. 0: not found."""
        request = {"do": "search", "name": name, "symbol": version, "in_driver": in_driver}
        address: int = self._ask(request)["address"]
        return address

    def object_at(self, address: int | None) -> str | None:
        """The file name of the library that holds an address."""
        for line in Path(f"/proc/{self.process.pid}/maps").read_text().splitlines():
            low, high = (int(part, 16) for part in line.split(maxsplit=1)[0].split("-"))
            if address is not None and low <= address < high:
                return Path(line.split()[-1]).name
        return None

    def fork(self) -> bool:
        """From now on the calls are made by a fork child, until `leave_child`."""
        return bool(self._ask({"do": "fork"})["child"])

    def leave_child(self) -> None:
        """End the fork child without any clean-up; the calls are the parent's again."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write('{"do": "leave"}\n')
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline()) == {"child": False}

    def end(self) -> str:
        """Let it end; returns what it printed to stderr."""
        if self.printed is None:
            _, self.printed = self.process.communicate(timeout=30)
        return self.printed

    def kill(self) -> None:
        """End it with SIGKILL, at whatever it is doing."""
        self.process.kill()
        self.end()

    def start(self, device: int = 0) -> int:
        """cuInit and a context on a device; returns the context."""
        assert self.call("cuInit", 0).result == SUCCESS
        reply = self.call("cuCtxCreate_v2", bytes(8), 0, device)
        assert reply.result == SUCCESS
        return reply.number()

    def alloc(self, size: int) -> int | None:
        """cuMemAlloc; the address, or None when it is out of memory."""
        reply = self.call("cuMemAlloc_v2", bytes(8), size)
        assert reply.result in (SUCCESS, OUT_OF_MEMORY)
        return reply.number() if reply.result == SUCCESS else None

    def close(self, descriptor: int) -> None:
        """Close a descriptor of the process."""
        self._ask({"do": "close", "descriptor": descriptor})

    def free(self, address: int) -> int:
        """cuMemFree; the driver's result."""
        return self.call("cuMemFree_v2", address).result

    def memory(self) -> tuple[int, int]:
        """cuMemGetInfo: free and total bytes."""
        reply = self.call("cuMemGetInfo_v2", bytes(8), bytes(8))
        assert reply.result == SUCCESS
        return reply.number(0), reply.number(1)

    def create(self, size: int, device: int = 0) -> Reply:
        """cuMemCreate of physical memory on a device."""
        properties = struct.pack("<iiiiQQ", 1, 0, ON_DEVICE, device, 0, 0)
        return self.call("cuMemCreate", bytes(8), size, properties, 0)

    def nvml_handle(self, index: int = 0) -> int:
        """nvmlInit and the handle of a card."""
        assert self.call("nvmlInit_v2").result == SUCCESS
        reply = self.call("nvmlDeviceGetHandleByIndex_v2", index, bytes(8))
        assert reply.result == SUCCESS
        return reply.number()

    def nvml_memory(self, handle: int) -> tuple[int, int, int]:
        """nvmlDeviceGetMemoryInfo: total, free and used bytes."""
        reply = self.call("nvmlDeviceGetMemoryInfo", handle, bytes(24))
        assert reply.result == SUCCESS
        total, free, used = struct.unpack("<QQQ", reply.buffers[0])
        return total, free, used
