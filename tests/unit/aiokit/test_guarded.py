"""Guarded work ends before its guard's word goes on, whoever is first."""

import asyncio

import pytest

from casaba.aiokit import run_guarded, running_beside


class Lost(Exception):
    """What the guard of these tests says."""


async def for_ever() -> None:
    await asyncio.Event().wait()


async def lost() -> None:
    raise Lost


async def test_the_works_result_is_returned_and_the_guard_is_over() -> None:
    guard_ended = asyncio.Event()

    async def guard() -> None:
        try:
            await for_ever()
        finally:
            guard_ended.set()

    async def work() -> int:
        await asyncio.sleep(0)
        return 5

    assert await run_guarded(work(), guard()) == 5
    assert guard_ended.is_set()


async def test_the_work_has_cleaned_up_when_the_guards_error_is_raised() -> None:
    cleaned = False

    async def work() -> None:
        nonlocal cleaned
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0.01)
            cleaned = True

    with pytest.raises(Lost):
        await run_guarded(work(), lost())
    assert cleaned


async def test_the_works_own_error_is_raised() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_guarded(work(), for_ever())


async def test_a_cancelled_caller_leaves_nothing_running() -> None:
    ended: list[str] = []

    async def noted(name: str) -> None:
        try:
            await for_ever()
        finally:
            ended.append(name)

    task = asyncio.create_task(run_guarded(noted("work"), noted("guard")))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == ["guard", "work"]


async def test_what_runs_beside_a_block_ends_with_it() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await for_ever()
        finally:
            ended.set()

    async with running_beside(work(), for_ever()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_the_blocks_own_error_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with running_beside(for_ever()):
            raise ZeroDivisionError


async def test_work_that_fails_beside_a_block_ends_it_with_its_own_error() -> None:
    with pytest.raises(Lost):
        async with running_beside(lost(), for_ever()):
            await for_ever()
    await asyncio.sleep(0)  # the caller is not cancelled


async def test_a_block_that_is_cancelled_from_outside_is_cancelled() -> None:
    async def caller() -> None:
        async with running_beside(for_ever()):
            await for_ever()

    task = asyncio.create_task(caller())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
