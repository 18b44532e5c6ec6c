"""Which templates go, and when it is worth looking again."""

from datetime import UTC, datetime, timedelta

import pytest

from casaba.policy.collection import (
    LAST_USED,
    MADE_BY,
    WEBHOOK,
    MadeTemplate,
    TemplateName,
    made_template,
    names_of_pod,
    plan_collection,
)
from casaba.wire.kubernetes import ObjectMeta, Pod, PodResourceClaim, PodSpec, PodStatus

NOW = datetime(2026, 12, 1, 11, 0, 0, tzinfo=UTC)
NAME = TemplateName("team-a", "casaba-0123456789abcdef")
PERIOD_S, SETTLE_S = 600.0, 120.0


def template(
    *,
    unused_s: float | None = 700.0,
    known_for_s: float = 300.0,
    name: TemplateName = NAME,
) -> MadeTemplate:
    used_at = None if unused_s is None else NOW - timedelta(seconds=unused_s)
    return MadeTemplate(
        name=name, uid="u", resource_version="7", used_at=used_at, known_for_s=known_for_s
    )


def decide(one: MadeTemplate, *in_use: TemplateName) -> tuple[bool, float | None]:
    plan = plan_collection([one], set(in_use), NOW, period_s=PERIOD_S, settle_s=SETTLE_S)
    assert plan.delete in ((), (one,))
    return bool(plan.delete), plan.look_again_in_s


@pytest.mark.parametrize(
    ("one", "goes", "again_in_s"),
    [
        (template(), True, None),
        (template(unused_s=600), True, None),
        (template(unused_s=599), False, 1.0),
        (template(unused_s=0), False, 600.0),
        (template(known_for_s=119), False, 1.0),
        (template(known_for_s=0), False, 120.0),
        (template(unused_s=590, known_for_s=0), False, 120.0),
        (template(unused_s=None, known_for_s=600), True, None),
        (template(unused_s=None, known_for_s=100), False, 500.0),
        (template(unused_s=-300, known_for_s=10_000), False, 900.0),  # a clock a bit ahead
        (template(unused_s=-1e9, known_for_s=10_000), True, None),  # nonsense
        (template(unused_s=-1e9, known_for_s=500), False, 100.0),
        (template(unused_s=1e9, known_for_s=10), False, 110.0),  # our clock jumped
        (template(name=TemplateName("team-a", "mine")), False, None),
        (template(name=TemplateName("team-a", "casaba-gpu")), False, None),
    ],
)
def test_one_that_no_pod_names(one: MadeTemplate, goes: bool, again_in_s: float | None) -> None:
    assert decide(one) == (goes, again_in_s)


def test_one_that_a_pod_names_stays() -> None:
    assert decide(template(), NAME) == (False, None)


def test_a_pod_of_another_namespace_keeps_nothing() -> None:
    assert decide(template(), TemplateName("team-b", NAME.name)) == (True, None)


def test_the_next_to_be_due_says_when_to_look_again() -> None:
    several = [
        template(unused_s=unused_s, name=TemplateName("a", f"casaba-{number:016x}"))
        for number, unused_s in enumerate((10, 550, 700, 200))
    ]
    plan = plan_collection(several, set(), NOW, period_s=PERIOD_S, settle_s=SETTLE_S)
    assert [one.name.name for one in plan.delete] == [f"casaba-{2:016x}"]
    assert plan.look_again_in_s == 50.0


def metadata(stamp: str | None, created: str | None = "2026-12-01T10:00:00Z") -> ObjectMeta:
    return ObjectMeta(
        name=NAME.name,
        namespace=NAME.namespace,
        uid="u",
        resource_version="7",
        creation_timestamp=created,
        labels={MADE_BY: WEBHOOK},
        annotations={} if stamp is None else {LAST_USED: stamp},
    )


@pytest.mark.parametrize(
    ("stamp", "created", "used_at"),
    [
        ("2026-12-01T11:00:00Z", "2026-12-01T10:00:00Z", NOW),
        ("2026-12-01T12:00:00+01:00", None, NOW),
        (None, "2026-12-01T11:00:00Z", NOW),
        ("yesterday", "2026-12-01T11:00:00Z", NOW),
        ("2026-12-01T11:00:00", "2026-12-01T11:00:00Z", NOW),  # of no zone
        ("2026-12-01T11:00:00Z\n", "2026-12-01T11:00:00Z", NOW),
        ("0001-01-01T00:00:00+23:59", None, None),  # before time begins
        ("", None, None),
    ],
)
def test_a_stamp_that_cannot_be_read_counts_from_the_creation(
    stamp: str | None, created: str | None, used_at: datetime | None
) -> None:
    made = made_template(metadata(stamp, created), 0.0)
    assert made is not None
    assert made.used_at == used_at


def test_others_templates_are_none_of_ours() -> None:
    assert made_template(ObjectMeta(name="a", labels={MADE_BY: "somebody"}), 0.0) is None
    assert made_template(ObjectMeta(name="a"), 0.0) is None


def test_what_is_going_already_is_left_alone() -> None:
    going = ObjectMeta(name="a", labels={MADE_BY: WEBHOOK}, deletion_timestamp="2026-12-01T11:00Z")
    assert made_template(going, 0.0) is None


@pytest.mark.parametrize(
    ("phase", "needs"),
    [("", True), ("Pending", True), ("Running", True), ("Unknown", True), ("Succeeded", False)],
)
def test_a_pod_needs_its_templates_until_it_has_ended(phase: str, needs: bool) -> None:
    claims = (
        PodResourceClaim(name="a", resource_claim_template_name=NAME.name),
        PodResourceClaim(name="b", resource_claim_name="other"),
    )
    pod = Pod(
        metadata=ObjectMeta(name="p", namespace=NAME.namespace),
        spec=PodSpec(resource_claims=claims),
        status=PodStatus(phase=phase),
    )
    assert list(names_of_pod(pod)) == ([NAME] if needs else [])
