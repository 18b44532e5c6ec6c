"""What counts and what does not, and that it agrees with the scheduler's own account."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.allocation import Allocator
from casaba.policy.allocation_metrics import (
    Account,
    account,
    casaba_families,
    hami_dra_families,
    hami_families,
    legacy_dra_families,
    legacy_scheduler_families,
)
from casaba.wire.exposition import Family
from casaba.wire.kubernetes import Pod, ResourceClaim, ResourceSlice
from tests.unit.policy.allocation_metrics.clusters import (
    claim,
    find,
    gpu,
    pod,
    result,
    slice_of,
)

GIB = 1 << 30
CARD_BYTES = 23028 << 20


def held(found: Account) -> dict[str, tuple[int, int]]:
    return {
        str(card.id): (found.held[card.id].memory_bytes, found.held[card.id].cores)
        for card in found.cards
    }


def counted(*claims: ResourceClaim, slices: tuple[ResourceSlice, ...] = ()) -> tuple[int, int]:
    """What claims have of the one card."""
    found = account(slices or (slice_of("a", gpu(0)),), claims, find())
    return next(iter(held(found).values()))


def test_the_newest_complete_generation_counts() -> None:
    old = slice_of("a", gpu(0), generation=1)
    new = slice_of("a", gpu(0), gpu(1), generation=2)
    half = slice_of("a", gpu(2), generation=3, resourceSliceCount=2)
    cases = [
        ([old], ["0"]),
        ([old, new], ["0", "1"]),
        ([new, old], ["0", "1"]),
        ([old, new, half], ["0", "1"]),
        ([half], ["2"]),
    ]
    for slices, indexes in cases:
        assert [card.index for card in account(slices, [], find()).cards] == indexes


def test_a_generation_of_several_slices_counts_whole() -> None:
    first = slice_of("a", gpu(0), generation=2, resourceSliceCount=2)
    second = slice_of("a", gpu(10), gpu(9), generation=2, resourceSliceCount=2)
    found = account([second, first], [], find())
    assert [card.index for card in found.cards] == ["0", "9", "10"]


def test_other_drivers_devices_of_equal_names_do_not_count() -> None:
    theirs = claim("theirs", result("a", driver="gpu.example.com"))
    assert counted(theirs) == (0, 0)
    assert sum(account([], [theirs], find()).claims.values()) == 1  # it names our class


def test_a_device_that_is_given_whole_counts_whole() -> None:
    whole = result("a", shareID=None, consumedCapacity={})
    assert counted(claim("whole", whole)) == (CARD_BYTES, 100)


def test_admin_access_takes_nothing() -> None:
    assert counted(claim("admin", result("a", adminAccess=True))) == (0, 0)


def test_nonsense_takes_nothing_and_breaks_nothing() -> None:
    assert counted(claim("odd", result("a", memory="lots", cores="-5"))) == (0, 0)
    assert counted(claim("odd", result("a", consumedCapacity={}))) == (0, 0)


def test_shares_of_cards_that_nobody_shows_are_told_apart() -> None:
    found = account([slice_of("a", gpu(0))], [claim("lost", result("gone"))], find())
    assert (found.lost_shares, found.shares) == (1, ())


def states(several: list[ResourceClaim], *pods: Pod) -> dict[str, int]:
    told = account([], several, find(*pods), pods).claims
    return {state: count for state, count in told.items() if count}


def test_a_claim_is_pending_while_a_pod_waits_for_it() -> None:
    ahead = [claim("c")]
    assert states(ahead) == {"unused": 1}
    assert states(ahead, pod("p", ("g",), claims={"g": "c"})) == {"pending": 1}
    assert states(ahead, pod("p", ("g",), made={"g": "c"})) == {"pending": 1}
    for other in (
        pod("p", ("g",), claims={"g": "another"}),
        pod("p", ("g",), claims={"g": "c"}, namespace="team-b"),
        pod("p", ("g",), claims={"g": "c"}, phase="Failed"),
        pod("p", ("g",), made={"g": ""}),
    ):
        assert states(ahead, other) == {"unused": 1}


def test_what_is_allocated_is_not_pending_whoever_waits() -> None:
    waits = pod("p", ("g",), claims={"g": "c"})
    assert states([claim("c", result("gone"))], waits) == {"allocated": 1}
    assert states([claim("c", result("gone"), pods=["p"])], waits) == {"reserved": 1}


def test_a_pod_of_the_same_name_that_is_another_lends_no_containers() -> None:
    claims = [claim("c", result("a"), pods=["p"])]
    other = pod("p", ("g",), claims={"g": "c"})
    other = Pod(metadata=type(other.metadata)(name="p", namespace="team-a", uid="other"))
    found = account([slice_of("a", gpu(0))], claims, find(other))
    assert [user.containers for share in found.shares for user in share.users] == [()]
    assert [held.containers for held in found.held.values()] == [1]


memory = st.integers(0, 4 * 1024).map(lambda mib: f"{mib}Mi")
results = st.builds(
    result,
    st.sampled_from(["a", "b", "gone"]),
    st.integers(0, 2),
    memory=memory,
    cores=st.integers(0, 20).map(str),
    request=st.sampled_from(["gpu", "x", "x/sub"]),
    driver=st.sampled_from(["hami-core-gpu.project-hami.io"] * 3 + ["other.example.com"]),
    adminAccess=st.sampled_from([None, None, None, True]),
    shareID=st.sampled_from(["3c0f1a52-0000-0000-0000-000000000000"] * 5 + [None]),
)
claims = st.lists(
    st.tuples(
        st.lists(results, max_size=3), st.lists(st.sampled_from("pqr"), max_size=2, unique=True)
    ),
    max_size=8,
).map(
    lambda several: [
        claim(f"c{number}", *found, pods=pods) for number, (found, pods) in enumerate(several)
    ]
)
SLICES = (slice_of("a", gpu(0), gpu(1)), slice_of("b", gpu(0), gpu(1), gpu(2)))
PODS = tuple(
    pod(name, ("one",), ("one/gpu", "two"), claims={"one": "c0", "two": "c1"}) for name in "pqr"
)


@given(claims)
def test_the_account_is_the_schedulers(several: list[ResourceClaim]) -> None:
    found = account(SLICES, several, find(*PODS))
    allocator = Allocator(
        slices=SLICES, classes={}, allocated=several, new_share_id=lambda: str(uuid.uuid4())
    )
    for device in allocator.free():
        mine = found.held[device.id]
        card = next(card for card in found.cards if card.id == device.id)
        if device.full:
            assert mine.memory_bytes >= card.memory_bytes
            continue
        room = device.capacity
        assert max(0, card.memory_bytes - mine.memory_bytes) == room["memory"].left.value()
        assert max(0, card.cores - mine.cores) == room["cores"].left.value()


@given(claims)
def test_cards_have_no_more_than_claims_consume(several: list[ResourceClaim]) -> None:
    found = account(SLICES, several, find(*PODS))
    assert sum(held.memory_bytes for held in found.held.values()) == sum(
        share.memory_bytes for share in found.shares
    )
    ours = [
        one
        for each in several
        if each.status.allocation
        for one in each.status.allocation.devices.results
        if one.driver.startswith("hami") and not one.admin_access
    ]
    assert len(found.shares) + found.lost_shares == len(ours)


def families(found: Account) -> tuple[Family, ...]:
    return (
        *hami_families(found),
        *hami_dra_families(found),
        *legacy_dra_families(found),
        *legacy_scheduler_families(found, without_cards=True),
        *casaba_families(found),
    )


@given(claims)
def test_no_name_is_told_twice_and_ratios_are_in_their_range(several: list[ResourceClaim]) -> None:
    told = families(account(SLICES, several, find(*PODS)))
    names = [family.name for family in told]
    assert len(names) == len(set(names))
    for family in told:
        assert all(len(values) == len(family.labels) for values, _ in family.samples)
        assert len(dict(family.samples)) == len(family.samples)
        assert all(value >= 0 for _, value in family.samples)
        if family.name in ("casaba_card_fragmentation_ratio", "casaba_card_free_cores_ratio"):
            assert all(value <= 1 for _, value in family.samples)


@given(claims)
def test_what_pods_are_told_of_sums_up_to_their_claims(several: list[ResourceClaim]) -> None:
    found = account(SLICES, several, find(*PODS))
    by_name = {family.name: family for family in hami_dra_families(found)}
    told = by_name["hami_dra_vgpu_memory_allocated_bytes"].samples
    for name in "pqr":
        theirs = sum(
            share.memory_bytes
            for share in found.shares
            if any(user.pod == name for user in share.users)
        )
        assert sum(value for labels, value in told if labels[-1] == name) == theirs
