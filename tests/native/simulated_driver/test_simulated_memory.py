import pytest

from tests.native.simulated_driver import cuda, host
from tests.native.simulated_driver.cuda import GRANULARITY, MIB, CudaProcess


def test_the_account_is_in_bytes_asked_for(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        assert a10.used_bytes() == 0
        _, plain = process.call("alloc", 1000)
        _, managed = process.call("managed", 3 * MIB + 1)
        assert a10.used_bytes() == 1000 + 3 * MIB + 1
        assert a10.process_bytes() == {process.pid: 1000 + 3 * MIB + 1}
        assert process.call("info") == [
            cuda.SUCCESS,
            host.A10_MIB * MIB - 3 * MIB - 1001,
            host.A10_MIB * MIB,
        ]
        assert process.call("free", plain) == cuda.SUCCESS
        assert process.call("free", managed) == cuda.SUCCESS
        assert a10.used_bytes() == 0
        assert a10.process_bytes() == {}


def test_a_pitched_block_counts_pitch_times_height(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        result, pointer, pitch = process.call("pitched", 1000, 7)
        assert (result, pitch) == (cuda.SUCCESS, 1024)
        assert a10.used_bytes() == 1024 * 7
        assert process.call("free", pointer) == cuda.SUCCESS
        assert process.call("pitched", 1000, 7, 3)[0] == cuda.INVALID_VALUE
        assert process.call("pitched", 1 << 40, 1 << 40)[0] == cuda.INVALID_VALUE
        assert a10.used_bytes() == 0


@pytest.mark.parametrize("take", ["alloc", "managed", "create"])
def test_beyond_the_physical_memory_is_refused(a10: host.Host, take: str) -> None:
    with a10.cuda() as process:
        process.start()
        rest = host.A10_MIB * MIB - GRANULARITY
        assert process.call("alloc", GRANULARITY)[0] == cuda.SUCCESS
        assert process.call(take, rest + GRANULARITY)[0] == cuda.OUT_OF_MEMORY
        assert process.call(take, 1 << 62)[0] == cuda.OUT_OF_MEMORY
        assert process.call(take, rest)[0] == cuda.SUCCESS
        assert process.call("alloc", 1)[0] == cuda.OUT_OF_MEMORY
        assert a10.used_bytes() == host.A10_MIB * MIB


def test_pointers_are_unique_and_only_known_ones_are_freed(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        pointers = [process.call("alloc", 300)[1] for _ in range(50)]
        assert len(set(pointers)) == 50
        assert all(pointer % 256 == 0 for pointer in pointers)
        assert process.call("free", pointers[0] + 1) == cuda.INVALID_VALUE
        assert process.call("free", 0x1234) == cuda.INVALID_VALUE
        assert process.call("free", 0) == cuda.SUCCESS
        assert process.call("free", pointers[0]) == cuda.SUCCESS
        assert process.call("free", pointers[0]) == cuda.INVALID_VALUE
        assert process.call("alloc", 0)[0] == cuda.INVALID_VALUE
        inside = pointers[1] + 299
        assert process.call("address_range", inside) == [cuda.SUCCESS, pointers[1], 300]


def test_small_contents_are_kept(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        _, pointer = process.call("alloc", 8)
        assert process.call("set_then_get", pointer, 0x5A, 8) == [cuda.SUCCESS, "5a" * 8]
        assert process.call("set_then_get", pointer, 0x5A, 9)[0] == cuda.INVALID_VALUE


def test_the_entry_points_without_a_suffix_use_small_pointers(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        result, pointer = process.call("alloc_v1", 100 * MIB)
        assert result == cuda.SUCCESS
        assert a10.used_bytes() == 100 * MIB
        assert process.call("address_range", pointer) == [cuda.SUCCESS, pointer, 100 * MIB]
        assert process.call("free", pointer) == cuda.SUCCESS


def test_a_context_takes_its_size_and_gives_everything_back(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + host.card_lines(context_mib=300))
    with a10.cuda() as process:
        assert process.call("init") == cuda.SUCCESS
        assert a10.used_bytes() == 0
        process.start()
        process.start()
        assert a10.used_bytes() == 300 * MIB
        _, context = process.call("create_context")
        process.call("alloc", 5 * MIB)
        assert a10.used_bytes() == 605 * MIB
        assert process.call("destroy_context", context) == cuda.SUCCESS
        assert process.call("destroy_context", context) == cuda.INVALID_CONTEXT
        process.call("retain")
        process.call("alloc", 7 * MIB)
        assert a10.used_bytes() == 307 * MIB
        assert process.call("reset") == cuda.SUCCESS
        assert a10.used_bytes() == 0
        assert process.call("release") == cuda.INVALID_CONTEXT


def test_no_context_where_there_is_no_room_for_it(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + host.card_lines(context_mib=300, memory_mib=500))
    with a10.cuda() as process, a10.cuda() as other:
        process.start()
        assert process.call("total", 0) == [cuda.SUCCESS, 500 * MIB]
        assert other.call("init") == cuda.SUCCESS
        assert other.call("retain") == cuda.OUT_OF_MEMORY
        assert process.call("release") == cuda.SUCCESS
        assert other.call("retain") == cuda.SUCCESS


def _mapped(process: CudaProcess, size: int) -> tuple[int, int]:
    """Addresses with memory behind them, and its handle."""
    _, handle = process.call("create", size)
    _, pointer = process.call("reserve", size)
    assert process.call("map", pointer, size, handle) == cuda.SUCCESS
    assert process.call("set_access", pointer, size) == cuda.SUCCESS
    return pointer, handle


@pytest.mark.parametrize("order", ["release first", "unmap first"])
def test_created_memory_is_freed_when_released_and_unmapped(a10: host.Host, order: str) -> None:
    size = 2 * GRANULARITY
    with a10.cuda() as process:
        process.start()
        pointer, handle = _mapped(process, size)
        assert process.call("set_then_get", pointer, 7, 16) == [cuda.SUCCESS, "07" * 16]
        steps = {"release_handle": (handle,), "unmap": (pointer, size)}
        for step in steps if order == "release first" else reversed(steps):
            assert a10.used_bytes() == size
            assert process.call(step, *steps[step]) == cuda.SUCCESS
        assert a10.used_bytes() == 0
        assert process.call("free_addresses", pointer, size) == cuda.SUCCESS


def test_every_retained_handle_keeps_the_memory(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        pointer, handle = _mapped(process, GRANULARITY)
        assert process.call("retain_handle", pointer + 5) == [cuda.SUCCESS, handle]
        process.call("unmap", pointer, GRANULARITY)
        process.call("release_handle", handle)
        assert a10.used_bytes() == GRANULARITY
        process.call("release_handle", handle)
        assert a10.used_bytes() == 0
        assert process.call("release_handle", handle) == cuda.INVALID_VALUE


def test_memory_without_addresses_counts_and_addresses_without_memory_do_not(
    a10: host.Host,
) -> None:
    with a10.cuda() as process:
        process.start()
        process.call("reserve", 64 * GRANULARITY)
        assert a10.used_bytes() == 0
        process.call("create", GRANULARITY)
        assert a10.used_bytes() == GRANULARITY


def test_virtual_memory_refuses_what_does_not_fit_together(a10: host.Host) -> None:
    with a10.cuda() as process:
        process.start()
        pointer, handle = _mapped(process, GRANULARITY)
        assert process.call("map", pointer, GRANULARITY, handle) == cuda.ALREADY_MAPPED
        assert process.call("free_addresses", pointer, GRANULARITY) == cuda.INVALID_VALUE
        assert process.call("unmap", pointer, 2 * GRANULARITY) == cuda.INVALID_VALUE
        assert process.call("create", GRANULARITY + 1)[0] == cuda.INVALID_VALUE
        assert process.call("create", GRANULARITY, 1)[0] == cuda.INVALID_DEVICE
        assert process.call("map", pointer + GRANULARITY, GRANULARITY, handle) != cuda.SUCCESS
        assert process.call("free", pointer) == cuda.INVALID_VALUE
        assert a10.used_bytes() == GRANULARITY


def test_ten_thousand_live_blocks_stay_quick(a10: host.Host) -> None:
    """A list would make the frees quadratic; the bound is two hundred times what a tree takes."""
    with a10.cuda() as process:
        process.start()
        assert process.call("many_blocks_s", 10_000) < 10
        assert a10.used_bytes() == 0
