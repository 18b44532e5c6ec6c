"""What `casaba run` decides."""

import dataclasses
from pathlib import Path

import pytest

from casaba.errors import InvalidInput
from casaba.model.ids import GpuUuid
from casaba.policy.local_slice import SliceFolders, choose_gpu, local_policy, slice_environment
from casaba.settings.local_slice import LocalSliceSettings
from tests.unit.values import A10, GIB

SECOND = dataclasses.replace(A10, uuid=GpuUuid("GPU-00000000-0000-0000-0000-000000000001"))


@pytest.mark.parametrize(
    ("wanted", "gpu"), [(None, A10), ("0", A10), ("1", SECOND), (SECOND.uuid, SECOND)]
)
def test_a_card_by_index_or_uuid(wanted: str | None, gpu: object) -> None:
    assert choose_gpu([A10, SECOND], wanted) is gpu


@pytest.mark.parametrize("wanted", ["2", "-1", "GPU-x", ""])
def test_an_unknown_card_lists_the_known(wanted: str) -> None:
    with pytest.raises(InvalidInput, match=f"this machine has 0 .{A10.uuid}"):
        choose_gpu([A10, SECOND], wanted)


def test_no_card_points_to_the_virtual_one() -> None:
    with pytest.raises(InvalidInput, match="--simulate"):
        choose_gpu([], None)


def test_the_limit_is_the_memory_asked_for_and_the_guard_stays_silent() -> None:
    policy = local_policy(LocalSliceSettings(memory="10Gi", command=()), A10)
    assert [card.memory_bytes for card in policy.cards] == [10 * GIB]
    assert not policy.announce


@pytest.mark.parametrize("memory", ["0", "-1Gi", "23029Mi"])
def test_a_limit_that_makes_no_sense(memory: str) -> None:
    with pytest.raises(InvalidInput, match="more than 0 and at most 23028Mi"):
        local_policy(LocalSliceSettings(memory=memory, command=()), A10)


def test_the_environment_keeps_what_was_there() -> None:
    folders = SliceFolders(run=Path("/run/x"), guard=Path("/guard.so"))
    environment = slice_environment({"LD_PRELOAD": "/mine.so", "HOME": "/h"}, folders, A10)
    assert environment == {
        "HOME": "/h",
        "LD_PRELOAD": "/guard.so:/mine.so",
        "CASABA_RUN_DIR": "/run/x",
        "CUDA_VISIBLE_DEVICES": A10.uuid,
    }


def test_cores_and_weight_are_handed_through() -> None:
    settings = LocalSliceSettings(memory="1Gi", command=(), cores_percent=50, weight=7)
    (card,) = local_policy(settings, A10).cards
    assert (card.cores_percent, card.weight) == (50, 7)


@pytest.mark.parametrize(
    ("cores", "weight", "text"),
    [
        (-1, 0, "--cores -1"),
        (101, 0, "--cores 101"),
        (0, -1, "--weight -1"),
        (0, 10**6, "--weight"),
    ],
)
def test_shares_that_make_no_sense(cores: int, weight: int, text: str) -> None:
    settings = LocalSliceSettings(memory="1Gi", command=(), cores_percent=cores, weight=weight)
    with pytest.raises(InvalidInput, match=text):
        local_policy(settings, A10)
