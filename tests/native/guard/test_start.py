"""How a process comes under its limits, and what happens when it cannot."""

import fcntl
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casaba.model.ids import GpuUuid
from casaba.wire import _policy_layout as policy_layout
from casaba.wire import _region_layout as region_layout
from tests.native.guard.machine import CARD_BYTES, CARDS, MIB, Budget, Machine
from tests.native.guard.tenant import NOT_INITIALIZED

NO_PERMISSION = 4
LIMIT = 64 * MIB
ANNOUNCEMENT = re.compile(
    r"\[HAMI-core Msg\((\d+):\d+:libcasaba_guard\.c:\d+\)\]: Initializing\.\.\.\.\.\n"
)


def word(value: int) -> bytes:
    """A 32-bit word of a file."""
    return struct.pack("<I", value)


def damage_policy(offset: int, content: bytes) -> Callable[[Budget], None]:
    """Overwrite a part of the policy file."""
    return lambda budget: budget.patch(budget.policy_file, offset, content)


def damage_region(offset: int, content: bytes) -> Callable[[Budget], None]:
    """Overwrite a part of the region file."""
    return lambda budget: budget.patch(budget.region_file, offset, content)


def truncate(name: str, size: int) -> Callable[[Budget], None]:
    """Shorten a file."""
    return lambda budget: os.truncate(budget.folder / name, size)


def replace_by_folder(name: str) -> Callable[[Budget], None]:
    """A folder where the file should be."""

    def replace(budget: Budget) -> None:
        (budget.folder / name).unlink()
        (budget.folder / name).mkdir()

    return replace


CHECKSUM = policy_layout.POLICY_FILE_COPIES
DAMAGES: list[tuple[str, Callable[[Budget], None], str, str]] = [
    ("policy magic", damage_policy(0, word(0x11)), "policy", "0x00000011, wanted 0x50425343"),
    ("policy version", damage_policy(4, word(7)), "policy", "version 7, wanted 1"),
    ("policy size word", damage_policy(8, word(5)), "policy", "5, wanted 4096"),
    ("policy too short", truncate("policy", 100), "policy", "100 bytes"),
    ("policy checksum", damage_policy(CHECKSUM, word(1)), "policy", "checksum of copy 0"),
    ("region magic", damage_region(0, word(0x11)), "region", "0x00000011, wanted 0x52425343"),
    ("region version", damage_region(4, word(9)), "region", "version 9, wanted 2"),
    ("region too short", truncate("region", 4096), "region", "4096 bytes"),
    ("no region", lambda budget: budget.region_file.unlink(), "region", "No such file"),
    ("region is a folder", replace_by_folder("region"), "region", "Is a directory"),
]


def test_without_a_claim_everything_passes(machine: Machine) -> None:
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.alloc(20_000 * MIB) is not None
        assert tenant.memory()[1] == CARD_BYTES
        assert tenant.nvml_memory(tenant.nvml_handle())[0] == CARD_BYTES
        assert tenant.end() == ""


def test_a_claim_folder_without_a_policy_is_no_budget(machine: Machine) -> None:
    (machine.run_folder / "claims" / "c" / "main").mkdir(parents=True)
    (machine.run_folder / "claims" / "stray").touch()
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.memory()[1] == CARD_BYTES


@pytest.mark.parametrize(
    ("damage", "file", "text"), [d[1:] for d in DAMAGES], ids=[d[0] for d in DAMAGES]
)
def test_what_cannot_be_used_refuses_with_one_line(
    machine: Machine, damage: Callable[[Budget], None], file: str, text: str
) -> None:
    machine.budget({CARDS[0]: LIMIT}, claim="a")
    broken = machine.budget({CARDS[0]: LIMIT}, claim="b")
    damage(broken)
    with machine.tenant() as tenant:
        for _ in range(2):
            assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
            assert tenant.call("nvmlInit_v2").result == NO_PERMISSION
            assert tenant.call("nvmlInitWithFlags", 0).result == NO_PERMISSION
        assert tenant.call("cuMemAlloc_v2", bytes(8), 1).result == NOT_INITIALIZED
        assert tenant.call("cuCtxCreate_v2", bytes(8), 0, 0).result == NOT_INITIALIZED
        assert tenant.create(1).result == NOT_INITIALIZED
        printed = tenant.end()
    assert printed.startswith(f"casaba guard: {broken.folder / file}: ")
    assert text in printed
    assert printed.count("\n") == 1
    assert tenant.process.returncode == 0


def test_a_limit_of_zero_refuses_with_one_line(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT, CARDS[1]: 0})
    with machine.tenant() as tenant:
        assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
        assert tenant.call("cuMemAlloc_v2", bytes(8), 1).result == NOT_INITIALIZED
        assert tenant.call("nvmlInit_v2").result == NO_PERMISSION
        printed = tenant.end()
    assert printed.startswith(f"casaba guard: {budget.policy_file}: the limit of card 1 is 0 bytes")
    assert printed.count("\n") == 1


def test_a_policy_for_other_cards_refuses_with_one_line(machine: Machine) -> None:
    stranger = GpuUuid("GPU-00000000-0000-0000-0000-00000000beef")
    budget = machine.budget({stranger: LIMIT})
    with machine.tenant() as tenant:
        for _ in range(2):
            assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
        assert tenant.call("cuCtxCreate_v2", bytes(8), 0, 0).result == NOT_INITIALIZED
        assert tenant.call("cuDevicePrimaryCtxRetain", bytes(8), 0).result == NOT_INITIALIZED
        assert tenant.call("cuMemAlloc_v2", bytes(8), 1).result == NOT_INITIALIZED
        assert tenant.create(2 * MIB).result == NOT_INITIALIZED
        printed = tenant.end()
    assert printed.startswith(f"casaba guard: {budget.folder}: no card of the CUDA driver")
    assert "0000beef" in printed
    assert printed.count("\n") == 1


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def test_a_read_only_region_refuses_with_one_line(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*namespace, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no mount namespaces, so nothing is read-only for root")
    script = "import ctypes, sys; sys.exit(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    environment = machine.environment()
    guarded = ["env", f"LD_PRELOAD={environment.pop('LD_PRELOAD')}", sys.executable, "-c", script]
    command = [*namespace, "sh", "-c", READ_ONLY, str(budget.region_file), *guarded]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == NOT_INITIALIZED
    assert done.stderr.startswith(
        f"casaba guard: {budget.region_file}: cannot be opened for writing"
    )
    assert "Read-only file system" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_repaired_file_is_used_by_the_next_call(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    budget.patch(budget.policy_file, 4, word(7))
    with machine.tenant() as tenant:
        assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
        budget.patch(budget.policy_file, 4, word(1))
        tenant.start()
        assert tenant.alloc(LIMIT + 1) is None


def test_too_many_requests(machine: Machine) -> None:
    for number in range(33):
        machine.budget({CARDS[0]: LIMIT}, request=f"r{number}")
    with machine.tenant() as tenant:
        assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
        assert "more than 32 requests" in tenant.end()


def test_a_run_folder_with_too_long_a_path(machine: Machine, tmp_path: Path) -> None:
    machine.run_folder = tmp_path.joinpath(*["x" * 200] * 3)
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
        assert "too long a path" in tenant.end()


@contextmanager
def all_slots_held(budget: Budget) -> Iterator[None]:
    """As if 256 processes used the region."""
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, region_layout.REGION_LOCK_BASE, 256, 0)
    with budget.region_file.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        yield


def test_no_slot_left(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        with all_slots_held(budget):
            assert tenant.call("cuInit", 0).result == NOT_INITIALIZED
            assert tenant.nvml_memory(tenant.nvml_handle())[0] == LIMIT
        tenant.start()
        assert tenant.alloc(LIMIT) is not None
        printed = tenant.end()
    assert printed.count("\n") == 1
    assert "all 256 places" in printed
    assert str(budget.folder) in printed


class TestAnnouncement:
    """The line by which users see the guard."""

    def test_once_a_process_at_the_first_init(self, machine: Machine) -> None:
        machine.budget({CARDS[0]: LIMIT}, claim="a")
        machine.budget({CARDS[1]: LIMIT}, claim="b", announce=True)
        with machine.tenant() as tenant:
            tenant.nvml_handle()
            tenant.start()
            tenant.call("cuInit", 0)
            printed = ANNOUNCEMENT.fullmatch(tenant.end())
        assert printed
        assert int(printed[1]) == tenant.process.pid

    def test_a_fork_child_is_a_process(self, machine: Machine) -> None:
        machine.budget({CARDS[0]: LIMIT}, announce=True)
        with machine.tenant() as tenant:
            tenant.nvml_handle()
            assert tenant.fork()
            tenant.call("nvmlInit_v2")
            tenant.leave_child()
            assert len(ANNOUNCEMENT.findall(tenant.end())) == 2

    def test_not_unless_asked_for(self, machine: Machine) -> None:
        machine.budget({CARDS[0]: LIMIT})
        with machine.tenant() as tenant:
            tenant.start()
            assert tenant.end() == ""


def test_budgets_are_used_in_path_order(machine: Machine) -> None:
    made = {
        (claim, request): machine.budget({CARDS[0]: MIB}, claim=claim, request=request)
        for claim, request in (("b", "x"), ("a", "y-z"), ("a", "y"), ("B", "x"))
    }
    with machine.tenant() as tenant:
        tenant.start()
        order = []
        for _ in made:
            assert tenant.alloc(MIB) is not None
            full = [key for key, budget in made.items() if budget.usage()[0].asked_bytes]
            order += [key for key in full if key not in order]
        assert order == sorted(made)


def test_a_slot_says_who_has_it(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        content = budget.region_file.read_bytes()
        at = region_layout.REGION_FILE_SLOTS
        pid, start, version, refusals = struct.unpack_from("<QQQQ", content, at)
        assert (pid, refusals) == (tenant.process.pid, 0)
        assert start > 0
        assert version > 0
        assert tenant.alloc(LIMIT + 1) is None
        content = budget.region_file.read_bytes()
        assert struct.unpack_from("<Q", content, at + 24) == (1,)
        assert budget.refusals() == 1


def test_the_lock_is_below_the_drivers_descriptors(machine: Machine) -> None:
    """The kernel frees the highest descriptor first: the memory's, then the lock."""
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        folder = Path(f"/proc/{tenant.process.pid}/fd")
        where = {int(link.name): link.resolve() for link in folder.iterdir() if link.exists()}
        lock = [number for number, path in where.items() if path == budget.region_file.resolve()]
        drivers = [n for n, path in where.items() if machine.cards_folder in path.parents]
        assert len(lock) == 1
        assert lock[0] < min(drivers)


def test_closed_standard_streams_stay_closed(machine: Machine) -> None:
    """Else what a program writes to stderr would land in the accounts."""
    budget = machine.budget({CARDS[0]: LIMIT})
    script = (
        "import os; os.closerange(0, 3);"
        "import ctypes; assert ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2() == 0;"
        f"files = [os.path.realpath(f'/proc/self/fd/{{n}}') for n in range(3)];"
        f"os._exit({str(budget.region_file.resolve())!r} in files)"
    )
    subprocess.run([sys.executable, "-c", script], env=machine.environment(), check=True)
