"""A program that makes the driver calls it is told to; see tenant.py for the protocol.

Runs alone, with the standard library only.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

ERRNO_MARK = 77
LIBRARIES: dict[str, ctypes.CDLL] = {}


def library(name: str) -> ctypes.CDLL:
    """The driver library that a function name belongs to."""
    path = "libcuda.so.1" if name.startswith("cu") else "libnvidia-ml.so.1"
    if path not in LIBRARIES:
        LIBRARIES[path] = ctypes.CDLL(path, use_errno=True)
    return LIBRARIES[path]


def proc_address(name: str, version: int, flags: int) -> int | None:
    """What cuGetProcAddress_v2 hands out; None when it knows nothing."""
    address, status = ctypes.c_void_p(), ctypes.c_int()
    ask = library("cu").cuGetProcAddress_v2
    ask(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status))
    return address.value


def address_of(request: dict[str, Any]) -> int | None:
    """Where a name leads to, through the door that was asked for."""
    if "version" in request:
        return proc_address(request["name"], request["version"], request.get("flags", 0))
    try:
        found = getattr(library(request["name"]), request["name"])
    except AttributeError:
        return None
    return ctypes.cast(found, ctypes.c_void_p).value


def search(request: dict[str, Any]) -> int:
    """dlsym, or dlvsym when a version is named."""
    handle = library("cu")._handle if request["in_driver"] else None
    arguments = [ctypes.c_void_p(handle), request["name"].encode()]
    if request["symbol"] is not None:
        arguments.append(request["symbol"].encode())
    find = getattr(ctypes.CDLL(None), "dlsym" if request["symbol"] is None else "dlvsym")
    find.restype = ctypes.c_void_p
    return find(*arguments) or 0


def argument(value: Any) -> Any:
    """A number as it is, hex text as a buffer that the function may write to, null as NULL."""
    if isinstance(value, dict):
        content = bytes.fromhex(value["by_value"])
        fields = [("content", ctypes.c_ubyte * len(content))]
        record: Any = type("Record", (ctypes.Structure,), {"_fields_": fields})
        return record.from_buffer_copy(content)
    if isinstance(value, str):
        content = bytes.fromhex(value)
        return ctypes.create_string_buffer(content, len(content))
    return None if value is None else ctypes.c_uint64(value & (2**64 - 1))


def call(request: dict[str, Any]) -> dict[str, Any]:
    """One driver call: its result, its buffers afterwards, and errno."""
    address = address_of(request)
    if address is None:
        return {"absent": True}
    target = ctypes.CFUNCTYPE(ctypes.c_int, use_errno=True)(address)
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


def close(request: dict[str, Any]) -> dict[str, Any]:
    """Closes a descriptor."""
    os.close(request["descriptor"])
    return {}


DEEDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "call": call,
    "address": lambda request: {"address": address_of(request)},
    "search": lambda request: {"address": search(request)},
    "fork": lambda _: fork(),
    "close": close,
}


def main() -> None:
    """Answer each line with a line until the input ends; `leave` ends this process at once."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if request["do"] == "leave":
            sys.stdout.flush()
            os._exit(0)
        print(json.dumps(DEEDS[request["do"]](request)), flush=True)


main()
