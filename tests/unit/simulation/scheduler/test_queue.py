"""The scheduling queue: by examples, and against a model of what it promises."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from casaba.kube import ObjectKey
from casaba.simulation.scheduler.news import News
from casaba.simulation.scheduler.queue import SchedulingQueue

KEYS = [ObjectKey("default", name) for name in "abcd"]
A, B, *_ = KEYS


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def new_queue() -> tuple[SchedulingQueue, Clock]:
    clock = Clock()
    return SchedulingQueue(clock, first_backoff_s=1, last_backoff_s=4, flush_s=100), clock


def test_pods_come_in_order_and_once() -> None:
    queue, _ = new_queue()
    for key in (A, B, A):
        queue.add(key)
    assert [queue.pop(), queue.pop(), queue.pop()] == [A, B, None]


def test_a_waiting_pod_comes_back_at_news_that_may_help() -> None:
    queue, _ = new_queue()
    queue.add(A)
    queue.pop()
    queue.wait_for(A, frozenset({News.NODE}))
    queue.tell(News.SLICE)
    assert queue.pop() is None
    queue.tell(News.NODE)
    assert queue.pop() == A


def test_news_for_another_pod_wake_nobody() -> None:
    queue, _ = new_queue()
    queue.add(A)
    queue.pop()
    queue.wait_for(A, frozenset({News.CLAIM}))
    queue.tell(News.CLAIM, B)
    assert queue.pop() is None
    queue.tell(News.CLAIM, A)
    assert queue.pop() == A


def test_news_during_the_work_are_not_missed() -> None:
    queue, _ = new_queue()
    queue.add(A)
    queue.pop()
    queue.tell(News.CLAIM_FREED)
    queue.wait_for(A, frozenset({News.CLAIM_FREED}))
    assert queue.pop() == A


def test_failures_back_off_longer_each_time_up_to_a_limit() -> None:
    queue, clock = new_queue()
    queue.add(A)
    for delay_s in (1, 2, 4, 4):
        assert queue.pop() == A
        queue.retry(A)
        assert queue.next_due_s() == clock.now_s + delay_s
        queue.tell(News.NODE)
        assert queue.pop() is None
        clock.now_s += delay_s


def test_a_pod_that_waits_without_news_is_looked_at_again_in_the_end() -> None:
    queue, clock = new_queue()
    queue.add(A)
    queue.pop()
    queue.wait_for(A, frozenset({News.NODE}))
    assert queue.next_due_s() == 100
    clock.now_s = 100
    assert queue.pop() == A


def test_what_ends_after_the_pod_was_removed_does_not_bring_it_back() -> None:
    queue, _ = new_queue()
    queue.add(A)
    queue.pop()
    queue.remove(A)
    queue.retry(A)
    queue.wait_for(A, frozenset(News))
    queue.tell(News.NODE)
    assert queue.pop() is None
    assert queue.next_due_s() is None


class QueueMachine(RuleBasedStateMachine):
    """No pod is ever lost, worked on twice at once, or handed out after its removal."""

    @initialize()
    def start(self) -> None:
        self.queue, self.clock = new_queue()
        self.in_work: set[ObjectKey] = set()
        self.wanted: set[ObjectKey] = set()

    @rule(key=st.sampled_from(KEYS))
    def add(self, key: ObjectKey) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=st.sampled_from(KEYS))
    def remove(self, key: ObjectKey) -> None:
        self.queue.remove(key)
        self.wanted.discard(key)
        self.in_work.discard(key)

    @rule()
    def pop(self) -> None:
        key = self.queue.pop()
        if key is not None:
            assert key in self.wanted
            assert key not in self.in_work
            self.in_work.add(key)

    @precondition(lambda self: self.in_work)
    @rule(cures=st.frozensets(st.sampled_from(News)), fails=st.booleans(), data=st.data())
    def finish(self, cures: frozenset[News], fails: bool, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.in_work.remove(key)
        if fails:
            self.queue.retry(key)
        else:
            self.queue.wait_for(key, cures)

    @rule(news=st.sampled_from(News), key=st.none() | st.sampled_from(KEYS))
    def tell(self, news: News, key: ObjectKey | None) -> None:
        self.queue.tell(news, key)

    @rule(seconds=st.integers(0, 50))
    def wait(self, seconds: int) -> None:
        self.clock.now_s += seconds

    @invariant()
    def every_pod_comes_in_the_end(self) -> None:
        if self.wanted - self.in_work:
            due_s = self.queue.next_due_s()
            assert due_s is not None
            assert due_s <= self.clock.now_s + 100

    def teardown(self) -> None:
        self.clock.now_s += 100
        left = self.wanted - self.in_work
        assert {self.queue.pop() for _ in left} == left


TestQueueMachine = QueueMachine.TestCase
