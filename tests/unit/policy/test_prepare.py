"""What a claim comes to on the node."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import PrepareRefused
from casaba.model.claim import AllocatedClaim
from casaba.model.ids import DeviceName, GpuUuid
from casaba.model.slice_parameters import CorePolicy, SliceParameters
from casaba.policy.prepare import NodeFacts, PreparePlan, plan_prepare
from casaba.settings.budgets import BudgetSettings
from tests.unit.values import A10, CLAIM_UID, GIB, MIB, NODE, claims, one_claim, one_share

SECOND = dataclasses.replace(A10, minor=1, uuid=GpuUuid("GPU-00000000-0000-0000-0000-000000000001"))
FACTS = NodeFacts(
    node=NODE,
    gpus={gpu.device_name: gpu for gpu in (A10, SECOND)},
    guard_version="0.1.0-0123456789ab",
    claims_dir=Path("/host/claims"),
    budget_settings=BudgetSettings(),
)


def limits(plan: PreparePlan, request: str) -> list[tuple[str, int, int]]:
    (budget,) = (budget for budget in plan.budgets if budget.request == request)
    return [(card.gpu, card.memory_bytes, card.cores_percent) for card in budget.policy.cards]


def test_the_documents_claim() -> None:
    plan = plan_prepare(one_claim(one_share()), [], FACTS)
    assert limits(plan, "gpu") == [(A10.uuid, 10240 * MIB, 50)]
    (device,) = plan.devices
    assert device.cdi_ids == (
        f"casaba.dev/card={A10.uuid}",
        "casaba.dev/guard=0.1.0-0123456789ab",
        f"casaba.dev/schedule={A10.uuid}",
        f"casaba.dev/claim={CLAIM_UID}-gpu",
    )


def test_a_claims_spec_mounts_policy_read_only_and_region_writable() -> None:
    plan = plan_prepare(one_claim(one_share()), [], FACTS)
    (device,) = json.loads(plan.cdi_spec)["devices"]
    mounts = {
        mount["containerPath"]: (mount["hostPath"], mount["options"][0])
        for mount in device["containerEdits"]["mounts"]
    }
    folder = f"{CLAIM_UID}/gpu"
    assert mounts == {
        f"/run/casaba/claims/{folder}/policy": (f"/host/claims/{folder}/policy", "ro"),
        f"/run/casaba/claims/{folder}/region": (f"/host/claims/{folder}/region", "rw"),
    }


def test_two_requests_are_two_budgets() -> None:
    plan = plan_prepare(
        one_claim(one_share(4 * GIB, 20, request="a"), one_share(6 * GIB, 30, request="b")),
        [],
        FACTS,
    )
    assert limits(plan, "a") == [(A10.uuid, 4 * GIB, 20)]
    assert limits(plan, "b") == [(A10.uuid, 6 * GIB, 30)]


def test_two_shares_of_one_card_in_one_request_add_up() -> None:
    share = one_share(4 * GIB, 20)
    plan = plan_prepare(one_claim(share, share), [], FACTS)
    assert limits(plan, "gpu") == [(A10.uuid, 8 * GIB, 40)]
    assert len(plan.devices) == 2


def test_one_request_over_two_cards_is_one_budget() -> None:
    plan = plan_prepare(one_claim(one_share(device=0), one_share(device=1)), [], FACTS)
    assert [gpu for gpu, _, _ in limits(plan, "gpu")] == [A10.uuid, SECOND.uuid]


@pytest.mark.parametrize(
    ("cores", "said", "terms"),
    [
        (50, SliceParameters(), (50, 500)),
        (0, SliceParameters(), (0, 1)),
        (50, SliceParameters(weight=7), (50, 70)),
        (50, SliceParameters(core_policy=CorePolicy.DISABLE), (0, 500)),
    ],
)
def test_parameters_reach_the_policy_file(
    cores: int, said: SliceParameters, terms: tuple[int, int]
) -> None:
    share = dataclasses.replace(one_share(cores=cores), parameters=said)
    (budget,) = plan_prepare(one_claim(share), [], FACTS).budgets
    (card,) = budget.policy.cards
    assert (card.cores_percent, card.weight) == terms


def test_without_a_cap_a_share_still_counts_as_promised() -> None:
    said = SliceParameters(core_policy=CorePolicy.DISABLE)
    share = dataclasses.replace(one_share(GIB, 60), parameters=said)
    other = one_claim(share, uid="99999999-2222-3333-4444-555555555555")
    with pytest.raises(PrepareRefused, match="120 of 100 cores"):
        plan_prepare(one_claim(share), [other], FACTS)


def test_shares_of_one_card_in_one_request_weigh_together() -> None:
    share = one_share(4 * GIB, 20)
    (budget,) = plan_prepare(one_claim(share, share), [], FACTS).budgets
    (card,) = budget.policy.cards
    assert (card.cores_percent, card.weight) == (40, 400)


@given(st.lists(claims(), max_size=6, unique_by=lambda claim: claim.uid))
def test_no_card_is_ever_promised_twice(asked: list[AllocatedClaim]) -> None:
    promised: list[AllocatedClaim] = []
    for claim in asked:
        try:
            plan_prepare(claim, promised, FACTS)
        except PrepareRefused:
            continue
        promised.append(claim)
    for name, gpu in FACTS.gpus.items():
        shares = [share for claim in promised for share in claim.shares if share.device == name]
        assert sum(share.memory_bytes for share in shares) <= gpu.memory_bytes
        assert sum(share.cores_percent for share in shares) <= 100


@given(claims())
def test_preparing_again_is_the_same(claim: AllocatedClaim) -> None:
    try:
        plan = plan_prepare(claim, [], FACTS)
    except PrepareRefused:
        return
    assert plan_prepare(claim, [claim], FACTS) == plan


def test_an_overbooked_card_is_refused_with_the_sums() -> None:
    other = one_claim(one_share(13 * GIB), uid="99999999-2222-3333-4444-555555555555")
    with pytest.raises(PrepareRefused, match=r"23Gi of 23028Mi memory.*another claim"):
        plan_prepare(one_claim(one_share()), [other], FACTS)


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(PrepareRefused, match="'hami-gpu-7' is not on node edge-gpu-a10"):
        plan_prepare(one_claim(one_share(device=7)), [], FACTS)


def test_another_nodes_pool_is_named() -> None:
    share = dataclasses.replace(one_share(), pool="elsewhere", device=DeviceName("hami-gpu-0"))
    with pytest.raises(PrepareRefused, match="pool 'elsewhere'"):
        plan_prepare(one_claim(share), [], FACTS)
