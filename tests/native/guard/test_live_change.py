"""Limits change while the process runs; a half-written file changes nothing."""

import threading

from casaba.wire import _policy_layout as layout
from tests.native.guard.machine import CARDS, MIB, Machine

LOW, HIGH = 32 * MIB, 64 * MIB


def test_a_limit_is_raised_and_lowered(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LOW})
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.alloc(LOW) is not None
        assert tenant.alloc(1) is None
        budget.change(HIGH)
        assert tenant.memory() == (HIGH - LOW, HIGH)
        assert tenant.alloc(HIGH - LOW) is not None
        budget.change(LOW)
        assert tenant.memory() == (0, LOW)
        assert tenant.nvml_memory(tenant.nvml_handle()) == (LOW, 0, LOW)
        assert tenant.alloc(1) is None
        budget.change(HIGH + 1)
        assert tenant.alloc(1) is not None


def test_a_copy_with_a_wrong_checksum_leaves_the_limits(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LOW})
    with machine.tenant() as tenant:
        tenant.start()
        budget.change(HIGH)
        valid = budget.policy_file.read_bytes()
        other = layout.POLICY_FILE_COPIES + layout.POLICY_COPY_BYTES
        limit = other + layout.POLICY_COPY_CARDS + layout.POLICY_CARD_MEMORY_LIMIT[0]
        budget.patch(budget.policy_file, limit, (HIGH * 2).to_bytes(8, "little"))
        assert tenant.memory()[1] == LOW
        assert tenant.alloc(LOW + 1) is None
        budget.policy_file.open("r+b").close()
        budget.patch(budget.policy_file, 0, valid)
        assert tenant.memory()[1] == HIGH


def test_the_copy_that_is_not_valid_may_be_anything(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LOW})
    other = layout.POLICY_FILE_COPIES + layout.POLICY_COPY_BYTES
    budget.patch(budget.policy_file, other, b"\xff" * layout.POLICY_COPY_BYTES)
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.memory()[1] == LOW


def test_other_cards_in_a_changed_policy_leave_the_limits(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LOW})
    other = machine.budget({CARDS[1]: HIGH}, claim="z")
    with machine.tenant() as tenant:
        tenant.start()
        other.change(HIGH)
        budget.patch(budget.policy_file, 0, other.policy_file.read_bytes())
        assert tenant.memory()[1] == LOW


def test_a_reader_sees_the_old_or_the_new_limit(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LOW})
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            budget.change(HIGH)
            budget.change(LOW)

    writer = threading.Thread(target=change)
    with machine.tenant() as tenant:
        tenant.start()
        writer.start()
        try:
            seen = {tenant.memory()[1] for _ in range(2000)}
        finally:
            stop.set()
            writer.join()
    assert seen == {LOW, HIGH}
