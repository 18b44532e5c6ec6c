"""What is left over is removed, what is in use is not."""

from casaba.model.ids import BootId
from casaba.model.prepared import CheckpointEntry
from casaba.policy.sweep import plan_sweep
from casaba.wire.cdi import claim_spec_file
from tests.unit.values import CLAIM_UID, one_claim, one_share


def test_only_what_this_boot_has_not_promised_goes() -> None:
    entry = CheckpointEntry(claim=one_claim(one_share()), boot_id=BootId("now"))
    ours, orphan = claim_spec_file(CLAIM_UID), "casaba.dev-claim_orphan.json"
    foreign = ["nvidia.yaml", "casaba.dev-card.json", "casaba.dev-guard.json"]
    plan = plan_sweep(
        {CLAIM_UID: entry}, BootId("now"), [ours, orphan, *foreign], [CLAIM_UID, "orphan"]
    )
    assert (plan.spec_files, plan.claim_folders) == ((orphan,), ("orphan",))


def test_after_a_reboot_everything_goes() -> None:
    entry = CheckpointEntry(claim=one_claim(one_share()), boot_id=BootId("before"))
    ours = claim_spec_file(CLAIM_UID)
    plan = plan_sweep({CLAIM_UID: entry}, BootId("now"), [ours], [CLAIM_UID])
    assert (plan.spec_files, plan.claim_folders) == ((ours,), (CLAIM_UID,))
