"""A key that was added is worked on after that, by one worker at a time, however things fall."""

import asyncio
import logging

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from casaba.aiokit import QueueClosed, WorkQueue
from casaba.aiokit.work_queue import OVERTAKEN_LIMIT_S

pytestmark = pytest.mark.timeout(20)

KEYS = st.sampled_from("abcd")


async def test_equal_keys_are_one_and_the_order_is_kept() -> None:
    queue = WorkQueue[str]()
    for key in "abacb":
        queue.add(key)
    queue.shut_down()
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_a_key_added_while_in_work_comes_again_after_that_work() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(0.01)
    assert not getting.done()
    queue.done("a")
    assert await getting == "a"


async def test_a_delayed_key_comes_at_the_earliest_of_its_times() -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str]()
    started_s = loop.time()
    queue.add_after("a", 60)
    queue.add_after("a", 0.02)
    queue.add_after("a", 30)
    assert queue.unfinished == {"a"}
    async with asyncio.timeout(5):
        assert await queue.get() == "a"
    assert 0.019 <= loop.time() - started_s < 5


async def test_the_back_off_of_each_key_grows_until_it_is_reset() -> None:
    queue = WorkQueue[str](first_retry_s=10, last_retry_s=1000)
    delays = [queue.retry("a") for _ in range(3)]
    assert delays[2] > delays[0]
    assert queue.retry("b") <= 10
    queue.reset("a")
    assert queue.retry("a") <= 10
    queue.shut_down()


async def test_a_getter_that_is_cancelled_takes_no_key() -> None:
    queue = WorkQueue[str]()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    async with asyncio.timeout(5):
        assert await second == "a"
    assert first.cancelled() or first.result() == "a"


async def test_serving_retries_what_failed_and_repeats_what_asks_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worked: list[str] = []
    queue = WorkQueue[str](first_retry_s=0.001)

    async def work(key: str) -> float | None:
        worked.append(key)
        if key == "fails once" and worked.count(key) == 1:
            raise ValueError("as told by the test")
        if key == "again" and worked.count(key) == 1:
            return 0.001
        if worked.count("fails once") == worked.count("again") == 2:
            queue.shut_down()
        return None

    queue.add("fails once")
    queue.add("again")
    async with asyncio.timeout(5):
        await queue.serve(work, workers=2)
    assert sorted(worked) == ["again", "again", "fails once", "fails once"]
    assert [record.message for record in caplog.records] == ["work.failed"]


@pytest.mark.parametrize(
    ("first_retry_s", "told"), [(0.001, "work.overtaken"), (4 * OVERTAKEN_LIMIT_S, "work.failed")]
)
async def test_work_that_is_overtaken_fails_only_if_that_goes_on(
    caplog: pytest.LogCaptureFixture, first_retry_s: float, told: str
) -> None:
    caplog.set_level(logging.DEBUG, "casaba.aiokit")
    queue = WorkQueue[str](first_retry_s=first_retry_s, overtaken=(KeyError,))

    async def work(key: str) -> None:
        asyncio.get_running_loop().call_soon(queue.shut_down)
        raise KeyError(key)

    queue.add("a")
    async with asyncio.timeout(5):
        await queue.serve(work)
    assert caplog.messages == [told]


async def test_a_cancelled_worker_leaves_its_key_to_others() -> None:
    queue = WorkQueue[str]()
    begun = asyncio.Event()

    async def work(key: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    queue.add("a")
    serving = asyncio.create_task(queue.serve(work))
    await begun.wait()
    serving.cancel()
    await asyncio.wait([serving])
    assert queue.unfinished == {"a"}
    assert await queue.get() == "a"


async def test_many_workers_never_share_a_key_and_drain_all() -> None:
    queue = WorkQueue[int]()
    in_work: set[int] = set()
    seen: dict[int, int] = {}
    changes = dict.fromkeys(range(20), 0)

    async def work(key: int) -> None:
        assert key not in in_work
        in_work.add(key)
        seen[key] = changes[key]
        await asyncio.sleep(0)
        in_work.remove(key)

    serving = asyncio.create_task(queue.serve(work, workers=4))
    for step in range(400):
        key = step * 7 % 20
        changes[key] += 1
        queue.add(key)
        if step % 5 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await queue.drained()
        queue.shut_down()
        await serving
    assert seen == changes


class QueueMachine(RuleBasedStateMachine):
    """The queue against a model: keys that wait, and keys that are in work."""

    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        self.runner = asyncio.Runner()
        self.queue = WorkQueue[str]()
        self.waiting: list[str] = []
        self.in_work: set[str] = set()
        self.closed = False

    def teardown(self) -> None:
        self.runner.close()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        if not self.closed and key not in self.waiting:
            self.waiting.append(key)

    @rule(key=KEYS)
    def add_after_no_time(self, key: str) -> None:
        self.queue.add_after(key, 0)
        if not self.closed and key not in self.waiting:
            self.waiting.append(key)

    def ready(self) -> list[str]:
        return [key for key in self.waiting if key not in self.in_work]

    @precondition(lambda self: self.ready())
    @rule()
    def get(self) -> None:
        key = self.runner.run(self.queue.get())
        assert key in self.ready()
        self.waiting.remove(key)
        self.in_work.add(key)

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.queue.done(key)
        self.in_work.remove(key)

    @precondition(lambda self: not self.ready())
    @rule()
    def nothing_to_get(self) -> None:
        with pytest.raises(QueueClosed if self.closed else TimeoutError):
            self.runner.run(self._get_soon())

    async def _get_soon(self) -> None:
        async with asyncio.timeout(0.0):
            await self.queue.get()

    @rule()
    def shut_down(self) -> None:
        self.queue.shut_down()
        self.closed = True

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.queue.unfinished == set(self.waiting) | self.in_work


def test_the_queue_behaves_as_its_model() -> None:
    run_state_machine_as_test(QueueMachine, settings=settings(max_examples=60, deadline=None))
