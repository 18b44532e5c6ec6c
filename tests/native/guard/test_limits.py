"""The memory limit holds to the byte, for every way to allocate and to free."""

import pytest

from tests.native.guard.machine import CARD_BYTES, CARDS, MIB, Machine
from tests.native.guard.tenant import OUT_OF_MEMORY, SUCCESS, Tenant

LIMIT = 64 * MIB
PITCH = 512
MANAGED_GLOBAL = 1


def test_alloc_up_to_the_limit_and_not_a_byte_more(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        first = tenant.alloc(LIMIT - MIB)
        assert first is not None
        assert tenant.alloc(MIB + 1) is None
        assert tenant.alloc(MIB) is not None
        assert tenant.alloc(1) is None
        assert tenant.free(first) == SUCCESS
        assert tenant.alloc(LIMIT - MIB) is not None
        assert budget.usage()[0].asked_bytes == LIMIT


@pytest.mark.parametrize("size", [LIMIT + 1, CARD_BYTES, 1 << 63, (1 << 64) - 1])
def test_a_request_beyond_the_limit_charges_nothing(machine: Machine, size: int) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.alloc(size) is None
        assert budget.usage()[0].asked_bytes == 0


def test_a_request_that_the_driver_refuses_charges_nothing(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: 2 * CARD_BYTES})
    with machine.tenant() as tenant:
        tenant.start()
        assert tenant.alloc(CARD_BYTES + MIB) is None
        assert tenant.call("cuMemAlloc_v2", bytes(8), 0).result == 1
        assert budget.usage()[0].asked_bytes == 0


def test_managed_memory_counts(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        reply = tenant.call("cuMemAllocManaged", bytes(8), LIMIT, MANAGED_GLOBAL)
        assert reply.result == SUCCESS
        more = tenant.call("cuMemAllocManaged", bytes(8), 1, MANAGED_GLOBAL)
        assert more.result == OUT_OF_MEMORY
        assert tenant.free(reply.number()) == SUCCESS
        assert budget.usage()[0].asked_bytes == 0


def test_pitched_memory_counts_pitch_times_height(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: 1000 * PITCH})
    with machine.tenant() as tenant:
        tenant.start()
        reply = tenant.call("cuMemAllocPitch_v2", bytes(8), bytes(8), 1, 1000, 4)
        assert (reply.result, reply.number(1)) == (SUCCESS, PITCH)
        assert budget.usage()[0].asked_bytes == 1000 * PITCH
        assert tenant.free(reply.number(0)) == SUCCESS
        more = tenant.call("cuMemAllocPitch_v2", bytes(8), bytes(8), PITCH + 1, 501, 4)
        assert more.result == OUT_OF_MEMORY
        overflow = tenant.call("cuMemAllocPitch_v2", bytes(8), bytes(8), 1 << 40, 1 << 40, 4)
        assert overflow.result == OUT_OF_MEMORY
        assert budget.usage()[0].asked_bytes == 0


def test_the_first_forms_of_the_calls_count_too(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        block = tenant.call("cuMemAlloc", bytes(4), MIB)
        rows = tenant.call("cuMemAllocPitch", bytes(4), bytes(4), 1, 2, 4)
        assert (block.result, rows.result, rows.number(1)) == (SUCCESS, SUCCESS, PITCH)
        assert tenant.call("cuMemAlloc", bytes(4), LIMIT - MIB).result == OUT_OF_MEMORY
        assert budget.usage()[0].asked_bytes == MIB + 2 * PITCH
        assert tenant.call("cuDeviceTotalMem", bytes(4), 0).number() == LIMIT
        memory = tenant.call("cuMemGetInfo", bytes(4), bytes(4))
        assert (memory.number(0), memory.number(1)) == (LIMIT - MIB - 2 * PITCH, LIMIT)
        assert tenant.call("cuMemFree", block.number()).result == SUCCESS
        assert tenant.call("cuMemFree", rows.number()).result == SUCCESS
        assert budget.usage()[0].asked_bytes == 0


def test_physical_memory_counts_until_no_handle_and_no_mapping_holds_it(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()

        def charged() -> int:
            return budget.usage()[0].asked_bytes

        handle = tenant.create(LIMIT).number()
        assert tenant.create(2 * MIB).result == OUT_OF_MEMORY
        reserve = tenant.call("cuMemAddressReserve", bytes(8), LIMIT, 0, 0, 0)
        address = reserve.number()
        assert tenant.call("cuMemMap", address, LIMIT, 0, handle, 0).result == SUCCESS
        assert tenant.call("cuMemRelease", handle).result == SUCCESS
        assert charged() == LIMIT
        again = tenant.call("cuMemRetainAllocationHandle", bytes(8), address + 5 * MIB)
        assert again.result == SUCCESS
        assert tenant.call("cuMemUnmap", address, LIMIT).result == SUCCESS
        assert charged() == LIMIT
        assert tenant.call("cuMemRelease", again.number()).result == SUCCESS
        assert charged() == 0


def test_physical_memory_of_two_mappings_side_by_side(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        address = tenant.call("cuMemAddressReserve", bytes(8), LIMIT, 0, 0, 0).number()
        for offset in (0, LIMIT // 2):
            handle = tenant.create(LIMIT // 2).number()
            mapped = tenant.call("cuMemMap", address + offset, LIMIT // 2, 0, handle, 0)
            assert mapped.result == SUCCESS
            assert tenant.call("cuMemRelease", handle).result == SUCCESS
        assert budget.usage()[0].asked_bytes == LIMIT
        assert tenant.call("cuMemUnmap", address, LIMIT).result == SUCCESS
        assert budget.usage()[0].asked_bytes == 0


def test_an_unmap_that_begins_with_memory_of_another_card(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start()
        address = tenant.call("cuMemAddressReserve", bytes(8), LIMIT, 0, 0, 0).number()
        for device, offset in ((1, 0), (0, LIMIT // 2)):
            handle = tenant.create(LIMIT // 2, device).number()
            mapped = tenant.call("cuMemMap", address + offset, LIMIT // 2, 0, handle, 0)
            assert mapped.result == SUCCESS
            assert tenant.call("cuMemRelease", handle).result == SUCCESS
        assert budget.usage()[0].asked_bytes == LIMIT // 2
        assert tenant.call("cuMemUnmap", address, LIMIT).result == SUCCESS
        assert budget.usage()[0].asked_bytes == 0


def test_physical_memory_is_charged_to_the_card_it_lies_on(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT, CARDS[1]: 2 * LIMIT})
    with machine.tenant() as tenant:
        tenant.start(device=0)
        assert tenant.create(2 * LIMIT, device=1).result == SUCCESS
        assert tenant.create(2 * MIB, device=1).result == OUT_OF_MEMORY
        assert [u.asked_bytes for u in budget.usage()] == [0, 2 * LIMIT]


def test_a_free_of_what_the_guard_does_not_know_is_the_drivers_affair(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant, machine.tenant(guarded=False) as free_tenant:
        tenant.start()
        free_tenant.start()
        assert tenant.free(12345) == free_tenant.free(12345) != SUCCESS
        assert tenant.free(0) == free_tenant.free(0)


def test_a_free_that_the_driver_refuses_keeps_the_charge(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        context = tenant.start()
        address = tenant.alloc(MIB)
        assert address is not None
        assert tenant.free(address + 1) != SUCCESS
        assert tenant.call("cuMemRelease", 999).result != SUCCESS
        assert tenant.call("cuCtxDestroy_v2", context + 8).result != SUCCESS
        assert budget.usage()[0].asked_bytes == MIB
        assert tenant.free(address) == SUCCESS
        assert budget.usage()[0].asked_bytes == 0


def test_a_card_without_a_budget_is_not_limited(machine: Machine) -> None:
    machine.budget({CARDS[0]: LIMIT})
    with machine.tenant() as tenant:
        tenant.start(device=1)
        assert tenant.alloc(2 * LIMIT) is not None
        assert tenant.memory()[1] == CARD_BYTES


def test_ten_thousand_blocks(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: 10_000 * 512})
    with machine.tenant() as tenant:
        tenant.start()
        blocks = [tenant.alloc(512) for _ in range(10_000)]
        assert tenant.alloc(1) is None
        assert None not in blocks
        assert all(tenant.free(block) == SUCCESS for block in blocks if block)
        assert budget.usage()[0].asked_bytes == 0


class TestContexts:
    """Overhead: free up to the allowance, then like any memory."""

    def test_contexts_are_charged_beyond_the_allowance(self, machine: Machine) -> None:
        budget = machine.budget({CARDS[0]: LIMIT}, allowance=10 * MIB, context_size=8 * MIB)
        with machine.tenant() as tenant:
            tenant.start()
            assert tenant.memory() == (LIMIT, LIMIT)
            second = tenant.call("cuCtxCreate_v2", bytes(8), 0, 0).number()
            assert tenant.memory() == (LIMIT - 6 * MIB, LIMIT)
            assert tenant.alloc(LIMIT - 6 * MIB + 1) is None
            assert tenant.call("cuCtxDestroy_v2", second).result == SUCCESS
            assert budget.usage()[0].overhead_bytes == 8 * MIB

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("cuCtxCreate", (0, 0)),
            ("cuCtxCreate_v2", (0, 0)),
            ("cuCtxCreate_v3", (None, 0, 0, 0)),
            ("cuCtxCreate_v4", (None, 0, 0)),
        ],
    )
    def test_every_way_to_make_a_context(
        self, machine: Machine, name: str, arguments: tuple[int | None, ...]
    ) -> None:
        budget = machine.budget({CARDS[0]: LIMIT}, allowance=0, context_size=LIMIT)
        with machine.tenant() as tenant:
            tenant.call("cuInit", 0)
            context = tenant.call(name, bytes(8), *arguments)
            assert context.result == SUCCESS
            assert tenant.call(name, bytes(8), *arguments).result == OUT_OF_MEMORY
            assert tenant.call("cuCtxDestroy", context.number()).result == SUCCESS
            assert budget.usage()[0].overhead_bytes == 0

    def test_a_full_budget_refuses_a_context(self, machine: Machine) -> None:
        machine.budget({CARDS[0]: LIMIT}, allowance=MIB, context_size=MIB)
        with machine.tenant() as tenant, machine.tenant() as late:
            tenant.start()
            assert tenant.alloc(LIMIT) is not None
            late.call("cuInit", 0)
            assert late.call("cuCtxCreate_v2", bytes(8), 0, 0).result == OUT_OF_MEMORY
            retained = late.call("cuDevicePrimaryCtxRetain", bytes(8), 0)
            assert retained.result == OUT_OF_MEMORY

    def test_a_primary_context_is_charged_once(self, machine: Machine) -> None:
        budget = machine.budget({CARDS[0]: LIMIT}, context_size=MIB)

        def overhead() -> int:
            return budget.usage()[0].overhead_bytes

        with machine.tenant() as tenant:
            tenant.call("cuInit", 0)
            for _ in range(2):
                assert tenant.call("cuDevicePrimaryCtxRetain", bytes(8), 0).result == SUCCESS
            assert overhead() == MIB
            assert tenant.call("cuDevicePrimaryCtxRelease_v2", 0).result == SUCCESS
            assert overhead() == MIB
            assert tenant.call("cuDevicePrimaryCtxRelease", 0).result == SUCCESS
            assert overhead() == 0
            assert tenant.call("cuDevicePrimaryCtxRelease_v2", 0).result != SUCCESS
            assert tenant.call("cuDevicePrimaryCtxRetain", bytes(8), 0).result == SUCCESS
            assert overhead() == MIB

    @pytest.mark.parametrize("end", ["cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2"])
    def test_memory_of_a_primary_context_goes_with_it(self, machine: Machine, end: str) -> None:
        budget = machine.budget({CARDS[0]: LIMIT}, context_size=MIB)
        with machine.tenant() as tenant:
            tenant.call("cuInit", 0)
            context = tenant.call("cuDevicePrimaryCtxRetain", bytes(8), 0).number()
            tenant.call("cuCtxSetCurrent", context)
            assert tenant.alloc(5 * MIB) is not None
            assert tenant.call(end, 0).result == SUCCESS
            assert (budget.usage()[0].asked_bytes, budget.usage()[0].overhead_bytes) == (0, 0)

    def test_memory_of_a_context_goes_with_it_and_other_memory_stays(
        self, machine: Machine
    ) -> None:
        budget = machine.budget({CARDS[0]: LIMIT})
        with machine.tenant() as tenant:
            tenant.start()
            assert tenant.alloc(3 * MIB) is not None
            second = tenant.call("cuCtxCreate_v2", bytes(8), 0, 0).number()
            for _ in range(200):
                assert tenant.alloc(4096) is not None
            assert tenant.create(4 * MIB).result == SUCCESS
            assert tenant.call("cuCtxDestroy_v2", second).result == SUCCESS
            assert budget.usage()[0].asked_bytes == 7 * MIB


class TestTwoBudgets:
    """Budgets on one card add up."""

    @pytest.fixture
    def tenant(self, machine: Machine) -> Tenant:
        """A process with 10 and 20 MiB."""
        self.first = machine.budget({CARDS[0]: 10 * MIB}, claim="a")
        self.second = machine.budget({CARDS[0]: 20 * MIB}, claim="b")
        tenant = machine.tenant()
        tenant.start()
        return tenant

    def charged(self) -> tuple[int, int]:
        """Bytes asked of the first and of the second budget."""
        return self.first.usage()[0].asked_bytes, self.second.usage()[0].asked_bytes

    def test_the_first_with_room_is_charged(self, tenant: Tenant) -> None:
        with tenant:
            assert tenant.alloc(8 * MIB) is not None
            assert self.charged() == (8 * MIB, 0)
            assert tenant.alloc(3 * MIB) is not None
            assert self.charged() == (8 * MIB, 3 * MIB)
            assert tenant.memory() == (19 * MIB, 30 * MIB)

    def test_a_block_too_large_for_each_is_split(self, tenant: Tenant) -> None:
        with tenant:
            block = tenant.alloc(30 * MIB)
            assert block is not None
            assert self.charged() == (10 * MIB, 20 * MIB)
            assert tenant.alloc(1) is None
            assert tenant.free(block) == SUCCESS
            assert self.charged() == (0, 0)

    def test_a_block_too_large_for_both_leaves_nothing(self, tenant: Tenant) -> None:
        with tenant:
            assert tenant.alloc(30 * MIB + 1) is None
            assert self.charged() == (0, 0)

    def test_a_pitched_block_is_split(self, tenant: Tenant) -> None:
        with tenant:
            rows = 30 * MIB // PITCH
            reply = tenant.call("cuMemAllocPitch_v2", bytes(8), bytes(8), 5, rows, 4)
            assert reply.result == SUCCESS
            assert self.charged() == (10 * MIB, 20 * MIB)
            assert tenant.free(reply.number()) == SUCCESS
            assert self.charged() == (0, 0)

    def test_another_process_may_have_only_one_of_them(
        self, machine: Machine, tenant: Tenant, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        alone = tmp_path_factory.mktemp("alone") / "claims" / "b"
        alone.mkdir(parents=True)
        (alone / "main").symlink_to(self.second.folder)
        environment = machine.environment() | {"CASABA_RUN_DIR": str(alone.parent.parent)}
        with tenant, Tenant(environment) as other:
            other.start()
            assert tenant.alloc(25 * MIB) is not None
            assert other.alloc(5 * MIB + 1) is None
            assert other.alloc(5 * MIB) is not None
            assert tenant.alloc(1) is None
