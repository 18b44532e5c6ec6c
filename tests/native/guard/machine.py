"""A host with virtual cards and claims, in a folder of its own."""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from casaba.model.ids import GpuUuid
from casaba.model.limits import CardLimits, CardUsage, Policy
from casaba.wire.policy_file import build_policy, change_policy
from casaba.wire.region_file import build_region, parse_processes, parse_refusals
from tests.native.guard.tenant import Tenant

MIB = 1 << 20
CARDS = tuple(GpuUuid(f"GPU-{uuid.UUID(int=0xC0FFEE00 + number)}") for number in range(2))
CARD_BYTES = 23028 * MIB


@dataclass
class Budget:
    """One request of one claim, as the node agent would prepare it."""

    folder: Path
    policy: Policy

    @property
    def policy_file(self) -> Path:
        """Where the guard finds the limits."""
        return self.folder / "policy"

    @property
    def region_file(self) -> Path:
        """Where it accounts."""
        return self.folder / "region"

    def write(self) -> None:
        """Make both files."""
        self.folder.mkdir(parents=True)
        self.policy_file.write_bytes(build_policy(self.policy))
        self.region_file.write_bytes(build_region())

    def change(self, memory_bytes: int) -> None:
        """Change the limit of every card, in place, as the agent does."""
        cards = tuple(replace(card, memory_bytes=memory_bytes) for card in self.policy.cards)
        self.policy = replace(self.policy, cards=cards, generation=self.policy.generation + 1)
        with self.policy_file.open("r+b") as file:
            for offset, content in change_policy(file.read(), self.policy):
                file.seek(offset)
                file.write(content)
                file.flush()

    def patch(self, file: Path, offset: int, content: bytes) -> None:
        """Damage a file."""
        with file.open("r+b") as opened:
            opened.seek(offset)
            opened.write(content)

    def refusals(self) -> int:
        """Requests that the guard refused, by all processes so far."""
        return parse_refusals(self.region_file.read_bytes())

    def usage(self) -> tuple[CardUsage, ...]:
        """What the region says, per card of the policy."""
        processes = parse_processes(self.region_file.read_bytes(), len(self.policy.cards))
        return tuple(
            CardUsage(
                asked_bytes=sum(process.cards[card].asked_bytes for process in processes.values()),
                overhead_bytes=sum(
                    process.cards[card].overhead_bytes for process in processes.values()
                ),
            )
            for card in range(len(self.policy.cards))
        )


class Machine:
    """Two cards, no claims yet."""

    def __init__(self, folder: Path, driver: Path, guard: Path) -> None:
        """`driver`: the folder of the simulated libraries."""
        self.guard, self.driver = guard, driver
        self.run_folder, self.cards_folder = folder / "run", folder / "cards"
        self.describe_cards()

    def describe_cards(self, context_mib: int = 0, memory_mib: int = CARD_BYTES // MIB) -> None:
        """Write cards.conf; each context takes `context_mib` of its card."""
        self.cards_folder.mkdir(parents=True, exist_ok=True)
        text = "driver_version = 580.126.09\ncuda_version = 13000\ndevice_nodes = ignored\n"
        for number, card in enumerate(CARDS):
            text += (
                f"[card]\nmodel = A10\nuuid = {card}\nbus_id = 00000000:00:0{number + 3}.0\n"
                f"minor = {number}\ncontext_mib = {context_mib}\nmemory_mib = {memory_mib}\n"
            )
        (self.cards_folder / "cards.conf").write_text(text)

    def budget(
        self,
        limits: Mapping[GpuUuid, int],
        *,
        claim: str = "c",
        request: str = "main",
        announce: bool = False,
        allowance: int = 0,
        context_size: int = 0,
    ) -> Budget:
        """Prepare a request: limits in bytes by card."""
        cards = tuple(
            CardLimits(
                gpu=card,
                memory_bytes=limit,
                context_allowance_bytes=allowance,
                context_size_bytes=context_size,
            )
            for card, limit in limits.items()
        )
        folder = self.run_folder / "claims" / claim / request
        budget = Budget(folder, Policy(cards=cards, announce=announce))
        budget.write()
        return budget

    def environment(self, *, guarded: bool = True) -> dict[str, str]:
        """What a process on this machine gets."""
        environment = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": str(self.driver),
            "CASABA_SIMULATED_DIR": str(self.cards_folder),
            "CASABA_RUN_DIR": str(self.run_folder),
        }
        return environment | ({"LD_PRELOAD": str(self.guard)} if guarded else {})

    def tenant(self, *, guarded: bool = True) -> Tenant:
        """A process on this machine."""
        return Tenant(self.environment(guarded=guarded))
