"""Whatever happens meanwhile and whoever is killed, in the end the nodes are clean.

Nodes that went away are named, and only they may be left.
"""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from casaba.policy.removal import Cleaned, ClusterSeen, Step, last_step, next_step
from tests.unit.policy.removal.release import Release

_ENOUGH = 50


class Uninstalls(RuleBasedStateMachine):
    """Uninstalls that are killed, upgrades between them, nodes at their own pace."""

    def __init__(self) -> None:
        super().__init__()
        self.release = Release()
        self.release.install()
        self.decide: Callable[[ClusterSeen], Step] = next_step
        self.decided: Step | None = None
        self.left: set[str] = set()

    @rule(node=st.sampled_from(["a", "b"]))
    def a_node_works(self, node: str) -> None:
        self.release.works(node)

    @rule(node=st.sampled_from(["a", "b"]))
    def a_node_goes_or_comes_back(self, node: str) -> None:
        self.release.silent ^= {node}

    @rule()
    def the_uninstall_looks(self) -> None:
        step = self.decide(self.release.seen())
        if isinstance(step, Cleaned):
            self._it_says_so(step)
        else:
            self.decided = step

    def _it_says_so(self, done: Cleaned) -> None:
        assert self.release.agent is None
        assert set(done.silent) <= self.release.silent
        if self.decide is next_step:
            assert self.release.dirty <= set(done.silent)
            self.left |= set(done.silent)
            self.decide = last_step
        else:
            assert self.release.cleaner is None
            assert self.release.cleaner_pods.keys() <= self.release.silent

    @precondition(lambda self: self.decided is not None)
    @rule()
    def the_uninstall_acts(self) -> None:
        """On what it saw, however long ago."""
        assert self.decided is not None
        self.release.act(self.decided)
        self.decided = None

    @rule()
    def the_uninstall_is_killed(self) -> None:
        self.decide, self.decided = next_step, None

    @precondition(lambda self: self.decide is next_step)
    @rule()
    def somebody_upgrades(self) -> None:
        self.release.install()

    def teardown(self) -> None:
        self.the_uninstall_is_killed()
        self.left = set()
        for _ in range(_ENOUGH):
            self.the_uninstall_looks()
            if self.decided is not None:
                self.the_uninstall_acts()
            self.release.works("a")
            self.release.works("b")
        assert self.decide is last_step
        assert self.left <= self.release.silent
        assert self.release.dirty <= self.left
        self.release.silent.clear()
        for node in self.release.nodes:
            self.release.works(node)
        assert self.release.seen() == ClusterSeen()


TestUninstalls = Uninstalls.TestCase
TestUninstalls.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
