"""Pools, arrays, graphs and shared memory are held like the rest."""

import struct
from collections.abc import Callable

import pytest

from casaba.wire import _region_layout as layout
from casaba.wire.region_file import parse_processes
from tests.native.guard.machine import CARDS, MIB, Budget, Machine
from tests.native.guard.tenant import OUT_OF_MEMORY, SUCCESS, ByValue, Tenant

LIMIT = 64 * MIB
FLOAT, LAYERED, SPARSE = 0x20, 0x01, 0x40
RELEASE_THRESHOLD = 4
POSIX_FILE = 1


@pytest.fixture
def budget(machine: Machine) -> Budget:
    """64 MiB of the first card."""
    return machine.budget({CARDS[0]: LIMIT})


@pytest.fixture
def tenant(machine: Machine, budget: Budget) -> Tenant:
    """A process with a context."""
    started = machine.tenant()
    started.start()
    return started


def asked(budget: Budget) -> int:
    """What the budget is charged for."""
    return budget.usage()[0].asked_bytes


def slot_words(budget: Budget, place: tuple[int, str], slot: int = 0) -> tuple[int, ...]:
    """A field of a slot record."""
    at = layout.REGION_FILE_SLOTS + slot * layout.REGION_SLOT_BYTES
    return struct.unpack_from(place[1], budget.region_file.read_bytes(), at + place[0])


def kinds(budget: Budget) -> dict[int, int]:
    """Bytes by kind, of those that are told."""
    words = slot_words(budget, layout.REGION_SLOT_KINDS)
    return {kind: held for kind, held in enumerate(words) if held}


def alloc_async(tenant: Tenant, size: int, name: str = "cuMemAllocAsync") -> int | None:
    """From the current pool, on the default stream."""
    reply = tenant.call(name, bytes(8), size, 0)
    assert reply.result in (SUCCESS, OUT_OF_MEMORY)
    return reply.number() if reply.result == SUCCESS else None


def pool_of(device: int = 0) -> bytes:
    """CUmemPoolProps."""
    return struct.pack("<iiii72x", 1, 0, 1, device)


def array_of(width: int, height: int, depth: int = 0, flags: int = 0) -> bytes:
    """CUDA_ARRAY3D_DESCRIPTOR of floats."""
    return struct.pack("<QQQIII4x", width, height, depth, FLOAT, 1, flags)


class TestPools:
    """What a pool has is charged, whether it gave it out or not."""

    @pytest.mark.parametrize("name", ["cuMemAllocAsync", "cuMemAllocAsync_ptsz"])
    def test_up_to_the_limit_and_not_beyond(
        self, tenant: Tenant, budget: Budget, name: str
    ) -> None:
        with tenant:
            first = alloc_async(tenant, LIMIT - 4 * MIB, name)
            assert first is not None
            assert alloc_async(tenant, 6 * MIB, name) is None
            assert budget.refusals() == 1
            assert alloc_async(tenant, 4 * MIB, name) is not None
            assert asked(budget) == LIMIT
            assert kinds(budget) == {layout.KIND_POOL: LIMIT}
            assert tenant.memory() == (0, LIMIT)

    def test_freed_memory_counts_until_the_pool_lets_go(
        self, tenant: Tenant, budget: Budget
    ) -> None:
        with tenant:
            block = alloc_async(tenant, 32 * MIB)
            assert tenant.call("cuMemFreeAsync", block, 0).result == SUCCESS
            assert asked(budget) == 32 * MIB
            assert tenant.call("cuStreamSynchronize", 0).result == SUCCESS
            assert asked(budget) == 0

    def test_what_a_pool_only_keeps_is_no_reason_to_refuse(
        self, tenant: Tenant, budget: Budget
    ) -> None:
        with tenant:
            pool = tenant.call("cuDeviceGetDefaultMemPool", bytes(8), 0).number()
            most = struct.pack("<Q", 2**64 - 1)
            assert tenant.call("cuMemPoolSetAttribute", pool, RELEASE_THRESHOLD, most).result == 0
            block = alloc_async(tenant, 48 * MIB)
            tenant.call("cuMemFreeAsync", block, 0)
            tenant.call("cuStreamSynchronize", 0)
            assert asked(budget) == 48 * MIB
            assert tenant.alloc(LIMIT) is not None
            assert kinds(budget) == {}
            assert asked(budget) == LIMIT

    def test_a_pool_of_its_own_and_its_end(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            pool = tenant.call("cuMemPoolCreate", bytes(8), pool_of()).number()
            reply = tenant.call("cuMemAllocFromPoolAsync", bytes(8), 40 * MIB, pool, 0)
            assert reply.result == SUCCESS
            refused = tenant.call("cuMemAllocFromPoolAsync", bytes(8), 40 * MIB, pool, 0)
            assert refused.result == OUT_OF_MEMORY
            assert tenant.call("cuMemPoolDestroy", pool).result == SUCCESS
            assert asked(budget) == 40 * MIB
            assert tenant.alloc(32 * MIB) is None
            assert tenant.free(reply.number()) == SUCCESS
            assert asked(budget) == 0

    def test_two_budgets_share_a_pool(self, machine: Machine, budget: Budget) -> None:
        other = machine.budget({CARDS[0]: LIMIT}, claim="d")
        with machine.tenant() as tenant:
            tenant.start()
            blocks = [alloc_async(tenant, size * MIB) for size in (48, 48, 32)]
            assert None not in blocks
            assert (asked(budget), asked(other)) == (LIMIT, LIMIT)
            assert alloc_async(tenant, 2 * MIB) is None
            for block in blocks:
                assert tenant.call("cuMemFreeAsync", block, 0).result == SUCCESS
            tenant.call("cuCtxSynchronize")
            assert (asked(budget), asked(other)) == (0, 0)


class TestArrays:
    """Arrays are charged by their elements."""

    def test_arrays_and_their_end(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            shape = array_of(1024, 4096)
            array = tenant.call("cuArray3DCreate_v2", bytes(8), shape)
            assert (array.result, asked(budget)) == (SUCCESS, 16 * MIB)
            assert kinds(budget) == {layout.KIND_ARRAY: 16 * MIB}
            wider = array_of(1024, 4096, 4)
            assert tenant.call("cuArray3DCreate_v2", bytes(8), wider).result == OUT_OF_MEMORY
            assert tenant.call("cuArrayDestroy", array.number()).result == SUCCESS
            assert asked(budget) == 0
            assert tenant.call("cuArray3DCreate_v2", bytes(8), wider).result == SUCCESS

    def test_all_levels_of_a_mipmapped_array(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            shape = array_of(2048, 2048)
            array = tenant.call("cuMipmappedArrayCreate", bytes(8), shape, 12)
            assert array.result == SUCCESS
            assert asked(budget) == sum(4 * (2048 >> level) ** 2 for level in range(12))
            tenant.call("cuMipmappedArrayDestroy", array.number())
            assert asked(budget) == 0

    def test_arrays_go_with_their_context(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            context = tenant.call("cuCtxCreate_v2", bytes(8), 0, 0).number()
            tenant.call("cuArray3DCreate_v2", bytes(8), array_of(1024, 1024))
            assert asked(budget) == 4 * MIB
            tenant.call("cuCtxDestroy_v2", context)
            assert asked(budget) == 0


class TestGraphs:
    """Memory nodes are backed by a launch."""

    def instantiate(self, tenant: Tenant, size: int) -> int:
        """A graph that takes memory and gives it back."""
        graph = tenant.call("cuGraphCreate", bytes(8), 0).number()
        params = pool_of() + struct.pack("<QQQQ", 0, 0, size, 0)
        node = tenant.call("cuGraphAddMemAllocNode", bytes(8), graph, None, 0, params)
        assert node.result == SUCCESS
        (pointer,) = struct.unpack_from("<Q", node.buffers[1], 112)
        before = struct.pack("<Q", node.number())
        freed = tenant.call("cuGraphAddMemFreeNode", bytes(8), graph, before, 1, pointer)
        assert freed.result == SUCCESS
        made = tenant.call("cuGraphInstantiateWithFlags", bytes(8), graph, 0)
        assert made.result == SUCCESS
        return made.number()

    def test_a_launch_is_refused_that_needs_too_much(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            fitting, large = (self.instantiate(tenant, n * MIB) for n in (48, 80))
            assert asked(budget) == 0
            assert tenant.call("cuGraphLaunch", large, 0).result == OUT_OF_MEMORY
            assert tenant.call("cuGraphLaunch", fitting, 0).result == SUCCESS
            assert kinds(budget) == {layout.KIND_GRAPH: 48 * MIB}
            assert tenant.alloc(16 * MIB) is not None
            assert tenant.call("cuGraphLaunch", fitting, 0).result == SUCCESS
            assert asked(budget) == LIMIT

    def test_what_graphs_only_keep_is_given_back(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            graph = self.instantiate(tenant, 48 * MIB)
            tenant.call("cuGraphLaunch", graph, 0)
            tenant.call("cuCtxSynchronize")
            assert tenant.alloc(LIMIT - 8 * MIB) is not None
            assert asked(budget) == LIMIT - 8 * MIB
            assert tenant.call("cuGraphLaunch", graph, 0).result == OUT_OF_MEMORY

    def test_a_captured_allocation_is_the_graphs(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            stream = tenant.call("cuStreamCreate", bytes(8), 1).number()
            assert tenant.call("cuStreamBeginCapture_v2", stream, 0).result == SUCCESS
            block = tenant.call("cuMemAllocAsync", bytes(8), LIMIT + MIB, stream)
            assert block.result == SUCCESS, "nothing is allocated yet"
            assert tenant.call("cuMemFreeAsync", block.number(), stream).result == SUCCESS
            graph = tenant.call("cuStreamEndCapture", stream, bytes(8)).number()
            made = tenant.call("cuGraphInstantiateWithFlags", bytes(8), graph, 0).number()
            assert asked(budget) == 0
            assert tenant.call("cuGraphLaunch", made, stream).result == OUT_OF_MEMORY
            assert tenant.call("cuGraphExecDestroy", made).result == SUCCESS


class TestContexts:
    """Contexts that are held several times, and green ones."""

    @pytest.fixture
    def sized(self, machine: Machine) -> Budget:
        """A budget in which three contexts are free."""
        return machine.budget({CARDS[0]: MIB}, allowance=24 * MIB, context_size=8 * MIB)

    def test_the_last_use_ends_it(self, machine: Machine, sized: Budget) -> None:
        with machine.tenant() as tenant:
            context = tenant.start()
            assert tenant.call("cuCtxAttach", bytes(8), 0).number() == context
            assert tenant.alloc(MIB) is not None
            assert tenant.call("cuCtxDetach", context).result == SUCCESS
            assert sized.usage()[0].overhead_bytes == 8 * MIB
            assert tenant.call("cuCtxDetach", context).result == SUCCESS
            assert (sized.usage()[0].overhead_bytes, asked(sized)) == (0, 0)

    def test_green_ones_are_charged(self, machine: Machine, sized: Budget) -> None:
        with machine.tenant() as tenant:
            tenant.start()
            resources = bytes(64)
            made = [tenant.call("cuGreenCtxCreate", bytes(8), resources, 0, 1) for _ in range(3)]
            assert [reply.result for reply in made] == [SUCCESS, SUCCESS, OUT_OF_MEMORY]
            assert sized.usage()[0].overhead_bytes == 24 * MIB
            assert tenant.call("cuGreenCtxDestroy", made[0].number()).result == SUCCESS
            assert sized.usage()[0].overhead_bytes == 16 * MIB
            assert tenant.alloc(MIB) is not None


class TestShared:
    """Memory that several processes have open is charged once."""

    def test_in_one_budget_the_exporter_pays(
        self, machine: Machine, tenant: Tenant, budget: Budget
    ) -> None:
        with tenant, machine.tenant() as other:
            other.start()
            block = tenant.alloc(48 * MIB)
            handle = tenant.call("cuIpcGetMemHandle", bytes(64), block).buffers[0]
            opened = open_ipc(other, handle)
            assert opened is not None
            assert asked(budget) == 48 * MIB
            assert close_ipc(other, opened) == SUCCESS
            assert asked(budget) == 48 * MIB
            assert tenant.free(block or 0) == SUCCESS
            assert asked(budget) == 0

    def test_the_exporters_account_outlives_it(
        self, machine: Machine, tenant: Tenant, budget: Budget
    ) -> None:
        with machine.tenant() as other:
            other.start()
            block = tenant.alloc(48 * MIB)
            handle = tenant.call("cuIpcGetMemHandle", bytes(64), block).buffers[0]
            opened = open_ipc(other, handle)
            assert opened is not None
            tenant.kill()
            assert other.alloc(32 * MIB) is None
            assert close_ipc(other, opened) == SUCCESS
            assert other.alloc(LIMIT) is not None

    def test_of_another_budget_the_importer_pays(self, machine: Machine, budget: Budget) -> None:
        with machine.tenant(guarded=False) as stranger, machine.tenant() as tenant:
            stranger.start()
            tenant.start()
            handles = []
            for size in (48 * MIB, 32 * MIB):
                block = stranger.alloc(size)
                reply = stranger.call("cuIpcGetMemHandle", bytes(64), block)
                handles.append(reply.buffers[0])
            opened = open_ipc(tenant, handles[0])
            assert opened is not None
            assert kinds(budget) == {layout.KIND_IMPORT: 48 * MIB}
            assert open_ipc(tenant, handles[0]) == opened
            assert asked(budget) == 48 * MIB
            assert open_ipc(tenant, handles[1]) is None
            assert [close_ipc(tenant, opened) for _ in range(2)] == [SUCCESS, SUCCESS]
            assert asked(budget) == 0
            assert open_ipc(tenant, handles[1]) is not None

    def test_a_shareable_handle_in_the_same_process(self, tenant: Tenant, budget: Budget) -> None:
        with tenant:
            properties = struct.pack("<iiiiQQ", 1, POSIX_FILE, 1, 0, 0, 0)
            made = tenant.call("cuMemCreate", bytes(8), 32 * MIB, properties, 0)
            assert made.result == SUCCESS
            shared = tenant.call("cuMemExportToShareableHandle", bytes(4), made.number(), 1, 0)
            assert shared.result == SUCCESS
            number = shared.number()
            opened = tenant.call("cuMemImportFromShareableHandle", bytes(8), number, POSIX_FILE)
            assert opened.result == SUCCESS
            assert asked(budget) == 32 * MIB
            tenant.call("cuMemRelease", made.number())
            assert asked(budget) == 32 * MIB
            tenant.call("cuMemRelease", opened.number())
            assert tenant.alloc(LIMIT) is None, "the descriptor still holds it"
            tenant.close(number)
            assert tenant.alloc(LIMIT) is not None


def open_ipc(tenant: Tenant, handle: bytes) -> int | None:
    """cuIpcOpenMemHandle; the address, or None when it is out of memory."""
    reply = tenant.call("cuIpcOpenMemHandle_v2", bytes(8), ByValue(handle), 1)
    assert reply.result in (SUCCESS, OUT_OF_MEMORY)
    return reply.number() if reply.result == SUCCESS else None


def close_ipc(tenant: Tenant, pointer: int) -> int:
    """cuIpcCloseMemHandle."""
    return tenant.call("cuIpcCloseMemHandle", pointer).result


def test_external_memory_is_charged_as_it_is_imported(tenant: Tenant, budget: Budget) -> None:
    def describe(size: int) -> bytes:
        return struct.pack("<i4xi12xQI68x", 1, 0, size, 0)

    with tenant:
        memory = tenant.call("cuImportExternalMemory", bytes(8), describe(48 * MIB))
        assert memory.result == SUCCESS
        assert kinds(budget) == {layout.KIND_IMPORT: 48 * MIB}
        refused = tenant.call("cuImportExternalMemory", bytes(8), describe(32 * MIB))
        assert refused.result == OUT_OF_MEMORY
        assert tenant.call("cuDestroyExternalMemory", memory.number()).result == SUCCESS
        assert asked(budget) == 0


def test_all_kinds_are_told(tenant: Tenant, budget: Budget) -> None:
    with tenant:
        tenant.alloc(8 * MIB)
        tenant.call("cuMemAllocManaged", bytes(8), 4 * MIB, 1)
        alloc_async(tenant, 2 * MIB)
        (process,) = parse_processes(budget.region_file.read_bytes(), 1).values()
        told = dict(enumerate(process.kinds_bytes))
        assert told[layout.KIND_DEVICE] == 8 * MIB
        assert told[layout.KIND_MANAGED] == 4 * MIB
        assert sum(told.values()) == 14 * MIB == process.peak_bytes


@pytest.mark.parametrize(
    "take",
    [
        lambda tenant: tenant.alloc(8 * MIB),
        lambda tenant: alloc_async(tenant, 8 * MIB),
        lambda tenant: tenant.call("cuArray3DCreate_v2", bytes(8), array_of(1024, 2048)).number(),
    ],
    ids=["alloc", "pool", "array"],
)
def test_the_most_that_was_ever_held_is_told(
    tenant: Tenant, budget: Budget, take: Callable[[Tenant], int | None]
) -> None:
    with tenant:
        first = tenant.alloc(16 * MIB)
        assert take(tenant) is not None
        assert tenant.free(first or 0) == SUCCESS
        assert slot_words(budget, layout.REGION_SLOT_PEAK) == (24 * MIB,)
