"""A call that hangs takes one thread, whoever asks how often, and nobody waits for it for ever."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from casaba.aiokit.lone_call import LoneCall, NoAnswer

SOON_S = 0.01
LONG_S = 600.0


class Hanging:
    """A call that hangs until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = threading.Event()

    def __call__(self) -> int:
        self.calls += 1
        self.go.wait()
        return self.calls


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    call = Hanging()
    yield call
    call.go.set()


async def test_it_returns_and_raises_what_the_call_does() -> None:
    lone = LoneCall("lone")
    assert await lone.ask(lambda: 7, LONG_S) == 7
    with pytest.raises(ZeroDivisionError):
        await lone.ask(lambda: 1 // 0)
    with pytest.raises(TimeoutError):
        await lone.ask(_times_out)
    assert await lone.ask(lambda: 8) == 8


def _times_out() -> int:
    raise TimeoutError


async def test_a_call_that_hangs_takes_one_thread_and_is_not_waited_for_twice(
    hanging: Hanging,
) -> None:
    lone = LoneCall("hanging-driver")
    with pytest.raises(NoAnswer, match="hanging-driver has not answered within"):
        await lone.ask(hanging, SOON_S)
    for _ in range(50):
        with pytest.raises(NoAnswer, match="asked before"):
            await lone.ask(hanging, LONG_S)
    assert hanging.calls == 1
    assert [one.name for one in threading.enumerate()].count("hanging-driver") == 1
    assert await asyncio.to_thread(lambda: "the others' threads are free") != ""


async def test_it_is_asked_anew_when_the_call_is_over_and_a_late_answer_is_dropped(
    hanging: Hanging,
) -> None:
    lone = LoneCall("hanging")
    with pytest.raises(NoAnswer):
        await lone.ask(hanging, SOON_S)
    hanging.go.set()
    while True:
        try:
            assert await lone.ask(lambda: -1, LONG_S) == -1
            return
        except NoAnswer:
            await asyncio.sleep(SOON_S)


async def test_who_is_cancelled_leaves_the_call_open(hanging: Hanging) -> None:
    lone = LoneCall("hanging")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SOON_S):
            await lone.ask(hanging, LONG_S)
    with pytest.raises(NoAnswer):
        await lone.ask(hanging, LONG_S)


def test_it_holds_up_no_exit_of_the_loop(hanging: Hanging) -> None:
    async def ask() -> None:
        await LoneCall("hanging").ask(hanging, SOON_S)

    with pytest.raises(NoAnswer):
        asyncio.run(ask())
    assert hanging.calls == 1
