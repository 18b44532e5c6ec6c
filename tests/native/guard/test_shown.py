"""CUDA and NVML show the slice instead of the card."""

import struct
import time

from tests.native.guard.machine import CARD_BYTES, CARDS, MIB, Machine
from tests.native.guard.tenant import SUCCESS

LIMIT = 10240 * MIB
MEMORY_V2 = 40 | 2 << 24


def test_nvml_shows_limit_and_use_of_all_processes(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as watcher, machine.tenant() as worker:
        handle = watcher.nvml_handle()
        assert watcher.nvml_memory(handle) == (LIMIT, LIMIT, 0)
        worker.start()
        worker.alloc(1000 * MIB)
        assert watcher.nvml_memory(handle) == (LIMIT, LIMIT - 1000 * MIB, 1000 * MIB)


def test_the_second_form_keeps_its_version(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        handle = tenant.nvml_handle()
        memory = struct.pack("<IIQQQQ", MEMORY_V2, 0, 1, 2, 3, 4)
        reply = tenant.call("nvmlDeviceGetMemoryInfo_v2", handle, memory)
        assert reply.result == SUCCESS
        version, _, *shown = struct.unpack("<IIQQQQ", reply.buffers[0])
        assert (version, shown) == (MEMORY_V2, [LIMIT, 0, LIMIT, 0])
        wrong = struct.pack("<IIQQQQ", 7, 0, 1, 2, 3, 4)
        assert tenant.call("nvmlDeviceGetMemoryInfo_v2", handle, wrong).result != SUCCESS


def test_charged_overhead_is_use(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT}, allowance=100 * MIB, context_size=130 * MIB)
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.nvml_memory(tenant.nvml_handle())[2] == 30 * MIB


def test_a_card_without_a_budget_is_shown_as_it_is(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        assert tenant.nvml_memory(tenant.nvml_handle(1))[0] == CARD_BYTES


def test_cuda_shows_the_limit(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.call("cuDeviceTotalMem_v2", bytes(8), 0).number() == LIMIT
        assert tenant.call("cuDeviceTotalMem_v2", bytes(8), 1).number() == CARD_BYTES
        tenant.alloc(MIB)
        assert tenant.memory() == (LIMIT - MIB, LIMIT)


def test_free_is_never_more_than_the_card_has(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant, machine.tenant(guarded=False) as neighbour:
        neighbour.start()
        neighbour.alloc(CARD_BYTES - 100 * MIB)
        tenant.start()
        assert tenant.memory() == (100 * MIB, LIMIT)


def test_a_limit_above_the_card_shows_the_card(machine: Machine) -> None:
    machine.budget({CARDS[0]: 2 * CARD_BYTES})
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.memory() == (CARD_BYTES, CARD_BYTES)
        assert tenant.nvml_memory(tenant.nvml_handle())[0] == CARD_BYTES


def test_null_outputs_are_the_drivers_affair(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant, machine.tenant(guarded=False) as bare:
        tenant.start()
        bare.start()
        for arguments in ((None, bytes(8)), (bytes(8), None), (None, None)):
            reply = tenant.call("cuMemGetInfo_v2", *arguments)
            assert reply.result == bare.call("cuMemGetInfo_v2", *arguments).result


def test_memory_of_the_dead_vanishes(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as watcher, machine.tenant() as worker:
        handle = watcher.nvml_handle()
        worker.start()
        worker.alloc(MIB)
        assert watcher.nvml_memory(handle)[2] == MIB
        worker.kill()
        deadline = time.monotonic() + 1
        while watcher.nvml_memory(handle)[2] and time.monotonic() < deadline:
            pass
        assert watcher.nvml_memory(handle) == (LIMIT, LIMIT, 0)
