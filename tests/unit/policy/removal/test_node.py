"""What of a node is ours, and when it stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.removal import ClaimsPrepared, NodeSeen, plan_removal
from casaba.settings.host_paths import DRIVER_NAME, HostPaths

PATHS = HostPaths()
UID = "11111111-2222-3333-4444-555555555555"
OTHERS = (
    "nvidia.yaml",
    "casaba.dev.json",
    "mycasaba.dev-card.json",
    "gpu.nvidia.com-reg.sock",
    f"{DRIVER_NAME}-reg.sock.bak",
    f"{DRIVER_NAME}-other-reg.sock",
)


def planned(**seen: tuple[str, ...]) -> list[str]:
    plan = plan_removal(PATHS, NodeSeen(**seen), by_force=False)
    return [str(path) for path in plan.files]


def test_ours_is_known_by_name() -> None:
    specs = ("casaba.dev-card.json", ".casaba.dev-guard.json.x1y2", "casaba.dev-schedule.json")
    sockets = (f"{DRIVER_NAME}-reg.sock", f"{DRIVER_NAME}-0a1b2c3d-reg.sock")
    found = planned(cdi_files=(*specs, *OTHERS), registry_files=(*sockets, *OTHERS))
    assert sorted(found) == sorted(
        [f"{PATHS.cdi_dir}/{name}" for name in specs]
        + [f"{PATHS.registry_dir}/{name}" for name in sockets]
    )


def test_the_folders_are_ours_alone() -> None:
    plan = plan_removal(PATHS, NodeSeen(), by_force=False)
    assert [str(folder) for folder in plan.folders] == [
        "/run/casaba",
        "/var/lib/casaba",
        f"/var/lib/kubelet/plugins/{DRIVER_NAME}",
    ]


@pytest.mark.parametrize(
    "seen",
    [
        NodeSeen(checkpoint_files=(f"{UID}.json",)),
        NodeSeen(cdi_files=(f"casaba.dev-claim_{UID}.json",)),
    ],
)
def test_prepared_claims_are_spared(seen: NodeSeen) -> None:
    with pytest.raises(ClaimsPrepared, match=rf"1 prepared claim on.*{UID}.*--force"):
        plan_removal(PATHS, seen, by_force=False)
    assert plan_removal(PATHS, seen, by_force=True).folders


def test_what_is_no_entry_holds_nothing() -> None:
    names = (f".{UID}.json.abc", f"{UID}.damaged", f".{UID}.json")
    assert planned(checkpoint_files=names) == []


def test_many_claims_are_not_all_told() -> None:
    seen = NodeSeen(checkpoint_files=tuple(f"claim-{number}.json" for number in range(9)))
    with pytest.raises(ClaimsPrepared, match=r"9 prepared claims .*claim-4 and 4 more"):
        plan_removal(PATHS, seen, by_force=False)


@given(st.lists(st.text(max_size=40).filter(lambda name: "/" not in name)))
def test_nothing_of_others_goes(names: list[str]) -> None:
    foreign = [name for name in names if "casaba" not in name and DRIVER_NAME not in name]
    assert planned(cdi_files=tuple(foreign), registry_files=tuple(foreign)) == []
