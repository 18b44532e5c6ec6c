"""Identifiers are checked before they become paths."""

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model.ids import (
    GpuUuid,
    claim_uid,
    gpu_uuid_bytes,
    gpu_uuid_text,
    request_name,
)


@given(st.uuids())
def test_gpu_uuid_is_the_same_in_both_forms(value: uuid.UUID) -> None:
    assert gpu_uuid_bytes(gpu_uuid_text(value.bytes)) == value.bytes


@pytest.mark.parametrize("text", ["", "GPU-", "GPU-xyz", "0"])
def test_no_gpu_uuid(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a GPU UUID"):
        gpu_uuid_bytes(GpuUuid(text))


@given(st.text(max_size=50))
def test_a_claim_uid_can_not_leave_its_folder(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert set(claim_uid(text)) <= set("0123456789abcdef-")


def test_subrequest_belongs_to_its_request() -> None:
    assert request_name("gpu/large") == "gpu"


@pytest.mark.parametrize("text", ["", "../x", "a b", "A", "-a", ".."])
def test_no_request_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a DNS label"):
        request_name(text)
