"""Bodies in protobuf: written by a small encoder here, read back as JSON."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.protobuf_bodies import from_protobuf
from casaba.simulation.api_server.statuses import ApiError


def varint(value: int) -> bytes:
    """A number, base 128."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, content: bytes) -> bytes:
    """An object in its envelope."""
    types = field(1, api_version) + field(2, kind)
    return b"k8s\0" + field(1, types) + field(2, content) + field(3, "") + field(4, "")


texts = st.text(max_size=300)


@given(texts.filter(bool), st.dictionaries(texts, texts), st.dictionaries(texts, st.binary()))
def test_a_config_map_is_read(name: str, data: dict[str, str], binary: dict[str, bytes]) -> None:
    content = field(1, field(1, name) + field(2, "") + field(7, 0) + field(8, b""))
    for key, text in data.items():
        content += field(2, field(1, key) + field(2, text))
    for key, value in binary.items():
        content += field(3, field(1, key) + field(2, value))
    expected: dict[str, Any] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}
    if data:
        expected["data"] = data
    if binary:
        expected["binaryData"] = {key: b64encode(each).decode() for key, each in binary.items()}
    assert from_protobuf(body("v1", "ConfigMap", content)) == expected


def test_numbers_that_were_set_to_zero_stay() -> None:
    read = from_protobuf(body("v1", "DeleteOptions", field(1, 0) + field(4, "")))
    assert read == {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    assert from_protobuf(body("v1", "DeleteOptions", field(1, -1)))["gracePeriodSeconds"] == -1


def test_lists_keep_their_empty_texts() -> None:
    rule = field(1, "get") + field(2, "") + field(3, "pods")
    read = from_protobuf(body("rbac.authorization.k8s.io/v1", "Role", field(2, rule)))
    assert read["rules"] == [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]


def test_times_are_told_to_the_second() -> None:
    metadata = field(8, field(1, 1_900_000_000) + field(2, 500))
    read = from_protobuf(body("v1", "Namespace", field(1, metadata)))
    assert read["metadata"] == {"creationTimestamp": "2030-03-17T17:46:40Z"}


def test_a_kind_that_is_not_known_is_named() -> None:
    with pytest.raises(ApiError, match="reads Widget as application/json") as refused:
        from_protobuf(body("v1", "Widget", b""))
    assert refused.value.code == 415


@given(st.binary(max_size=200), st.sampled_from(["ConfigMap", "Event", "Eviction", "Lease"]))
def test_broken_bytes_are_a_bad_request(content: bytes, kind: str) -> None:
    for broken in (content, b"k8s\0" + content, body("v1", kind, content)):
        try:
            from_protobuf(broken)
        except ApiError as error:
            refused = error
            assert refused.code in (400, 415)
