"""A program that makes the driver calls it is told to; see tenant.py for the protocol.

Runs alone, with the standard library only.
"""

import ctypes
import json
import os
import sys
from typing import Any

ERRNO_MARK = 77
LIBRARIES: dict[str, ctypes.CDLL] = {}
KEPT: list[ctypes.CDLL] = []


def library(name: str) -> ctypes.CDLL:
    """The driver library that a function name belongs to."""
    path = "libcuda.so.1" if name.startswith("cu") else "libnvidia-ml.so.1"
    if path not in LIBRARIES:
        LIBRARIES[path] = ctypes.CDLL(path, use_errno=True)
    return LIBRARIES[path]


def through_proc_address(name: str, version: int, flags: int) -> Any:
    """What cuGetProcAddress_v2 hands out; None when it knows nothing."""
    address, status = ctypes.c_void_p(), ctypes.c_int()
    ask = library("cu").cuGetProcAddress_v2
    ask(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status))
    if not address.value:
        return None
    return ctypes.CFUNCTYPE(ctypes.c_int, use_errno=True)(address.value)


def function(request: dict[str, Any]) -> Any:
    """The function to call, through the door that was asked for."""
    if "version" in request:
        return through_proc_address(request["name"], request["version"], request.get("flags", 0))
    return getattr(library(request["name"]), request["name"])


def argument(value: Any) -> Any:
    """A number as it is, hex text as a buffer that the function may write to, null as NULL."""
    if isinstance(value, str):
        content = bytes.fromhex(value)
        return ctypes.create_string_buffer(content, len(content))
    return None if value is None else ctypes.c_uint64(value & (2**64 - 1))


def call(request: dict[str, Any]) -> dict[str, Any]:
    """One driver call: its result, its buffers afterwards, and errno."""
    target = function(request)
    if target is None:
        return {"absent": True}
    arguments = [argument(value) for value in request["arguments"]]
    ctypes.set_errno(ERRNO_MARK)
    result = target(*arguments)
    return {
        "result": result,
        "errno": ctypes.get_errno(),
        "buffers": [a.raw.hex() for a in arguments if isinstance(a, ctypes.Array)],
    }


def fork() -> dict[str, Any]:
    """Goes on as the child; the parent only waits for it and then takes over again."""
    child = os.fork()
    if child == 0:
        return {"child": True}
    os.waitpid(child, 0)
    return {"child": False}


def main() -> None:
    """Answer each line with a line until the input ends; `leave` ends this process at once."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if request["do"] == "leave":
            sys.stdout.flush()
            os._exit(0)
        reply = fork() if request["do"] == "fork" else call(request)
        print(json.dumps(reply), flush=True)


main()
