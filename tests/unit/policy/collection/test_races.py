"""Webhook, pods and collector in any order, on clocks that are set wrong and set anew.

The webhook renews a stamp unless it is younger than a minute, as its clock has it; the pod that it
admitted appears within half a minute. The collector sees changes late, lists the pods, and deletes
by version later still.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from casaba.policy.collection import MadeTemplate, TemplateName, plan_collection

PERIOD_S, SETTLE_S = 600.0, 120.0
RENEWAL_S = 60.0
ADMISSION_S = 30.0
EPOCH = datetime(2026, 12, 1, tzinfo=UTC)
NAME = TemplateName("team-a", "casaba-0123456789abcdef")

offsets = st.sampled_from([0.0, 90.0, -3600.0, 1e8, -1e8])


@dataclass
class _Stored:
    version: int
    stamp: datetime


@dataclass
class _World:
    """True time, and what the API server has."""

    now_s: float = 0.0
    stored: _Stored | None = None
    versions: int = 0
    admitted: list[float] = field(default_factory=list)
    """When pods were admitted that are not there yet."""
    pods: int = 0


class Races(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = _World()
        self.webhook_clock_s = self.collector_clock_s = 0.0
        self.seen: tuple[_Stored, float] | None = None
        self.to_delete: MadeTemplate | None = None

    def _clock(self, offset_s: float) -> datetime:
        return EPOCH + timedelta(seconds=self.world.now_s + offset_s)

    @rule(webhook=offsets, collector=offsets)
    def clocks_are_set(self, webhook: float, collector: float) -> None:
        self.webhook_clock_s, self.collector_clock_s = webhook, collector

    @rule(seconds=st.sampled_from([1.0, 40.0, 130.0, 590.0, 650.0]))
    def time_passes(self, seconds: float) -> None:
        end_s = self.world.now_s + seconds
        while self.world.admitted and self.world.admitted[0] + ADMISSION_S <= end_s:
            self.world.now_s = self.world.admitted[0] + ADMISSION_S
            self.a_pod_appears(refused=False)
        self.world.now_s = end_s

    @rule()
    def a_pod_is_admitted(self) -> None:
        world, now = self.world, self._clock(self.webhook_clock_s)
        stored = world.stored
        fresh = stored and abs((now - stored.stamp).total_seconds()) < RENEWAL_S
        if not fresh:
            world.versions += 1
            world.stored = _Stored(world.versions, now)
        world.admitted.append(world.now_s)

    @precondition(lambda self: self.world.admitted)
    @rule(refused=st.booleans())
    def a_pod_appears(self, refused: bool) -> None:
        """Unless a later webhook refuses it."""
        del self.world.admitted[0]
        self.world.pods += not refused

    @precondition(lambda self: self.world.pods > 0)
    @rule()
    def a_pod_ends(self) -> None:
        self.world.pods -= 1

    def _hear(self) -> None:
        stored = self.world.stored
        if stored is None:
            self.seen = None
        elif self.seen is None or self.seen[0] != stored:
            self.seen = (stored, self.world.now_s)

    @precondition(lambda self: self.world.stored or self.seen)
    @rule(up_to_date=st.booleans())
    def the_collector_decides(self, up_to_date: bool) -> None:
        """It has just listed the pods; what it knows of templates may be older."""
        if up_to_date:
            self._hear()
        self.to_delete = None
        if self.seen is None:
            return
        stored, since_s = self.seen
        template = MadeTemplate(
            name=NAME,
            uid="u",
            resource_version=str(stored.version),
            used_at=stored.stamp,
            known_for_s=self.world.now_s - since_s,
        )
        in_use = {NAME} if self.world.pods else set()
        now = self._clock(self.collector_clock_s)
        plan = plan_collection([template], in_use, now, period_s=PERIOD_S, settle_s=SETTLE_S)
        self.to_delete = next(iter(plan.delete), None)

    @precondition(lambda self: self.to_delete is not None)
    @rule()
    def the_collector_deletes(self) -> None:
        stored, template = self.world.stored, self.to_delete
        self.to_delete = None
        if stored and template and str(stored.version) == template.resource_version:
            self.world.stored = None

    @invariant()
    def no_pod_misses_its_template(self) -> None:
        assert self.world.stored or not (self.world.pods or self.world.admitted)

    def teardown(self) -> None:
        """When all is quiet and the clocks agree, everything is gone in time."""
        self.world.admitted.clear()
        self.world.pods = 0
        self.webhook_clock_s = self.collector_clock_s = 0.0
        for _ in range(2 * int(PERIOD_S / SETTLE_S) + 2):
            self.the_collector_decides(up_to_date=True)
            self.the_collector_deletes()
            self.time_passes(SETTLE_S)
        assert self.world.stored is None


TestRaces = Races.TestCase
TestRaces.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
