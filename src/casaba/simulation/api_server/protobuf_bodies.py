"""Bodies in Kubernetes' protobuf, turned into the JSON that the rest of the server reads. Pure.

kubectl sends some commands' objects (`create namespace`, `auth can-i`) in it and knows no other
way. Answers are JSON, which every client takes. Wire format: protobuf.dev, "Encoding"; the
envelope: apimachinery, runtime.Unknown.
"""

import datetime
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from casaba.simulation.api_server.protobuf_fields import MESSAGES
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import ApiError, bad_request

PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"


class _Broken(ValueError):
    """The bytes are no protobuf."""


def from_protobuf(body: bytes) -> Object:
    """The object in a body; raises ApiError 400 for bytes that are none, 415 for other kinds."""
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        types = dict(_fields(envelope.get(1, b"")))
        api_version, kind = types.get(1, b"").decode(), types.get(2, b"").decode()
        if kind not in MESSAGES:
            raise _unknown(kind)
        content = _message(kind, envelope.get(2, b""))
    except (_Broken, UnicodeDecodeError, AttributeError, TypeError, OverflowError) as error:
        raise bad_request(f"the protobuf message can't be read: {error}") from None
    return {"kind": kind, "apiVersion": api_version, **content}


def _unknown(kind: str) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        f"the simulated server reads {kind} as application/json or application/yaml only",
    )


def _message(name: str, data: bytes) -> Object:
    form = MESSAGES[name]
    content: Object = {}
    for number, value in _fields(data):
        if number not in form:
            continue
        field, _, type_ = form[number].partition(":")
        if type_.startswith("*"):
            content.setdefault(field, []).append(_value(type_[1:], value))
        elif type_.startswith("%"):
            pair = dict(_fields(value))
            content.setdefault(field, {})[pair.get(1, b"").decode()] = _value(
                type_[1:], pair.get(2, b"")
            )
        else:
            content[field] = _value(type_, value)
    return {field: value for field, value in content.items() if not _is_absent(value)}


def _is_absent(value: Any) -> bool:
    """Go leaves out texts, messages and times that are empty; not numbers and flags."""
    return value is None or value == "" or value == {}


def _value(type_: str, value: Any) -> Any:
    match type_:
        case "" | "text":
            return value.decode()
        case "int":
            return _signed(value)
        case "count":
            return _signed(value) or None
        case "bool":
            return bool(value)
        case "bytes":
            return b64encode(value).decode()
        case "time" | "micro_time":
            return _time(value, micro=type_ == "micro_time")
        case "quantity":
            return dict(_fields(value)).get(1, b"0").decode()
        case _:
            return _message(type_, value)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = dict(_fields(data))
    if not parts:
        return None
    moment = datetime.datetime.fromtimestamp(_signed(parts.get(1, 0)), datetime.UTC)
    moment = moment.replace(microsecond=parts.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an int, or the bytes of a text or message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
                continue
            case 2:
                size, at = _varint(data, at)
            case 1:
                size = 8
            case 5:
                size = 4
            case other:
                raise _Broken(f"wire type {other} at byte {at}")
        if at + size > len(data):
            raise _Broken("it ends early")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if at >= len(data):
            raise _Broken("it ends early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
    raise _Broken(f"a number too long at byte {at}")
