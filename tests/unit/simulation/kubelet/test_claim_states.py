"""The kubelet's memory of claims."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import HostError
from casaba.net.dra_client import AnsweredDevice
from casaba.simulation.kubelet.claim_rules import devices_for
from casaba.simulation.kubelet.claim_states import ClaimState, ClaimStates

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
DEVICES = st.builds(
    AnsweredDevice,
    requests=st.lists(WORDS, max_size=2).map(tuple),
    pool=WORDS,
    device=WORDS,
    cdi_ids=st.lists(WORDS, max_size=2).map(tuple),
    share_id=st.none() | WORDS,
)
STATES = st.builds(
    ClaimState,
    namespace=WORDS,
    name=WORDS,
    uid=WORDS,
    pods=st.frozensets(WORDS, max_size=3),
    drivers=st.dictionaries(WORDS, st.lists(DEVICES, max_size=2).map(tuple), max_size=2),
    prepared=st.booleans(),
)


@given(st.lists(STATES, unique_by=lambda state: state.key, max_size=4))
def test_what_was_saved_is_known_again_but_prepared(states: list[ClaimState]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = (ClaimStates(Path(folder) / "state") for _ in range(2))
        for state in states:
            before.put(state)
        before.save()
        after.load()
    assert list(after) == [replace(state, prepared=False) for state in states]


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("{")
    with pytest.raises(HostError, match="is damaged"):
        ClaimStates(tmp_path / "state").load()


def test_no_file_is_an_empty_memory(tmp_path: Path) -> None:
    states = ClaimStates(tmp_path / "state")
    states.load()
    assert list(states) == []


@pytest.mark.parametrize(
    ("request_", "devices"),
    [("", ["a", "b", "all"]), ("main", ["all"]), ("other", ["b", "all"]), ("no", ["all"])],
)
def test_a_request_means_devices_that_were_answered_under_its_name(
    request_: str, devices: list[str]
) -> None:
    answered = tuple(
        AnsweredDevice(requests=requests, pool="p", device=name, cdi_ids=(), share_id=None)
        for name, requests in (("a", ("main/big",)), ("b", ("other",)), ("all", ()))
    )
    state = ClaimState(namespace="n", name="c", uid="u", pods=frozenset(), drivers={"d": answered})
    assert [device.device for _, device in devices_for(state, request_)] == devices
