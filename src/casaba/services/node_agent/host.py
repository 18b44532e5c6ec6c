"""The host's part of the agent: what is made ready once, and what a plan leaves on the machine."""

import logging
from dataclasses import dataclass

from casaba import __version__
from casaba.errors import HostError
from casaba.model.gpu import Gpu
from casaba.model.ids import BootId, ClaimUid
from casaba.model.prepared import CheckpointEntry
from casaba.node.boot import read_boot_id
from casaba.node.budgets import claims_on_disk, ensure_budget, remove_claim
from casaba.node.checkpoint import Checkpoint
from casaba.node.files import make_folder, remove_file, remove_tree, write_whole
from casaba.node.guard_library import guard_spec, install_guard, native_dir
from casaba.node.nvidia.discovery import discover_gpus
from casaba.node.nvidia.toolkit import (
    find_toolkit,
    generate_card_spec,
    install_hook,
    move_root,
    read_card_spec,
)
from casaba.node.schedules import ensure_schedule, schedule_spec
from casaba.policy.prepare import PreparePlan
from casaba.policy.sweep import SweepPlan, plan_sweep
from casaba.settings.host_paths import GUARD_LIBRARY, HostPaths
from casaba.settings.node_agent import NodeAgentSettings
from casaba.wire import cdi

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReadyHost:
    """A host with everything in place that all claims need, whatever cards there are."""

    guard_version: str
    boot_id: BootId
    entries: dict[ClaimUid, CheckpointEntry]


def make_host_ready(settings: NodeAgentSettings) -> ReadyHost:
    """Install the guard, look for the toolkit, sweep what earlier agents left.

    Blocking; raises HostError for what does not come by waiting.
    """
    if settings.card_spec is None:
        find_toolkit(settings.nvidia_ctk, settings.nvidia_cdi_hook)
    version = _install_guard(settings.paths)
    boot_id = read_boot_id(settings.boot_id_path)
    entries = Checkpoint(settings.paths.checkpoint_dir).load()
    sweep_host(settings.paths, entries, boot_id)
    return ReadyHost(guard_version=version, boot_id=boot_id, entries=entries)


def make_cards_ready(settings: NodeAgentSettings) -> tuple[Gpu, ...]:
    """Find the cards, write the specs of cards and schedules.

    Blocking; raises HostError while there is no driver that works, and InvalidInput.
    """
    gpus = discover_gpus(settings.driver_root, settings.sysfs_root)
    _describe_cards(settings)
    _make_schedules(settings.paths, gpus)
    return gpus


def _install_guard(paths: HostPaths) -> str:
    version = install_guard(native_dir() / GUARD_LIBRARY, paths.state_dir, __version__)
    spec = guard_spec(paths.state_dir)
    write_whole(paths.cdi_dir / cdi.GUARD_SPEC_FILE, spec, durable=False)
    return version


def _describe_cards(settings: NodeAgentSettings) -> None:
    given = settings.card_spec
    spec = read_card_spec(given) if given else _toolkits_card_spec(settings)
    write_whole(settings.paths.cdi_dir / cdi.CARD_SPEC_FILE, spec, durable=False)


def _toolkits_card_spec(settings: NodeAgentSettings) -> bytes:
    toolkit = find_toolkit(settings.nvidia_ctk, settings.nvidia_cdi_hook)
    hook = install_hook(toolkit.nvidia_cdi_hook, settings.paths.state_dir)
    spec = generate_card_spec(
        toolkit,
        hook=hook,
        driver_root=settings.driver_root,
        dev_root=settings.dev_root or settings.driver_root,
    )
    if settings.host_driver_root is None:
        return spec
    return move_root(toolkit, spec, settings.driver_root, settings.host_driver_root)


def _make_schedules(paths: HostPaths, gpus: tuple[Gpu, ...]) -> None:
    mend_schedules(paths, gpus)
    spec = schedule_spec(paths.gpus_dir, [gpu.uuid for gpu in gpus])
    write_whole(paths.cdi_dir / cdi.SCHEDULE_SPEC_FILE, spec, durable=False)


def mend_schedules(paths: HostPaths, gpus: tuple[Gpu, ...]) -> None:
    """Make every card's schedule whole; tenants can damage it. Raises HostError."""
    for gpu in gpus:
        if ensure_schedule(paths.gpus_dir / gpu.uuid, gpu.uuid):
            log.info("schedule.made", extra={"gpu": gpu.uuid})


def sweep_host(
    paths: HostPaths, entries: dict[ClaimUid, CheckpointEntry], boot_id: BootId
) -> SweepPlan:
    """Remove what earlier agents left and nobody needs; returns what it was. Raises HostError."""
    make_folder(paths.cdi_dir)
    specs = sorted(path.name for path in paths.cdi_dir.iterdir())
    plan = plan_sweep(entries, boot_id, specs, claims_on_disk(paths.claims_dir))
    for name in plan.spec_files:
        remove_file(paths.cdi_dir / name)
    for name in plan.claim_folders:
        remove_tree(paths.claims_dir / name)
    log.info(
        "host.swept",
        extra={"specs": len(plan.spec_files), "claims": len(plan.claim_folders)},
    )
    return plan


@dataclass(frozen=True)
class ClaimFiles:
    """Everything of a claim on the host: checkpoint entry, budgets, CDI spec. Blocking."""

    paths: HostPaths

    def carry_out(self, plan: PreparePlan, entry: CheckpointEntry) -> None:
        """Make the files of a plan; done again it changes nothing. Raises HostError.

        The entry comes first and goes last: what lies on the host is always accounted for.
        """
        Checkpoint(self.paths.checkpoint_dir).put(entry)
        for budget in plan.budgets:
            folder = self.paths.claims_dir / plan.claim.uid / budget.request
            ensure_budget(folder, budget.policy)
        path = self.paths.cdi_dir / cdi.claim_spec_file(plan.claim.uid)
        write_whole(path, plan.cdi_spec, durable=False)

    def remove(self, uid: ClaimUid) -> None:
        """Remove whatever there is of a claim; raises HostError, and can be done again."""
        remove_file(self.paths.cdi_dir / cdi.claim_spec_file(uid))
        remove_claim(self.paths.claims_dir, uid)
        Checkpoint(self.paths.checkpoint_dir).drop(uid)

    def roll_back(self, uid: ClaimUid) -> None:
        """Remove a claim whose plan could not be carried out; a failure is logged."""
        try:
            self.remove(uid)
        except HostError as error:
            log.error("claim.rollback_failed", extra={"claim": uid, "reason": str(error)})
