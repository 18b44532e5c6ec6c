"""`casaba demo`: slices of a virtual card, and that they hold."""

import json as json_format
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from casaba.cli.demo_shares import Reached, Tenant, run_side_by_side, shares_table
from casaba.cli.exits import exit_code_of
from casaba.cli.run import DEFAULT_MODEL, SIMULATED_BUDGETS, simulated_host
from casaba.errors import CasabaError
from casaba.node.guard_library import native_dir
from casaba.node.run_folders import own_folder, sweep_runs
from casaba.services.local_slice.main import make_slice, simulated_driver_dir
from casaba.settings.local_slice import LocalSliceSettings

MEMORY = "10Gi"
CHUNK_MIB = 1024
TENANTS = (Tenant(name="tenant A", cores_percent=50), Tenant(name="tenant B", cores_percent=25))
SHARES_S = 6.0
_STEP_TIMEOUT_S = 60

app = App(name="casaba demo", help="See slices hold, on a virtual card.", version_flags=[])


@app.default
def demo(*, json: Annotated[bool, Parameter(negative=())] = False) -> None:
    """See slices hold, on a virtual card: no GPU, no cluster, no root.

    Parameters
    ----------
    json:
        One JSON object per step instead of a story.
    """
    teller = Teller(json=json)
    with one_tenant() as environment:
        teller.title(f"1. A tenant with {MEMORY} of a virtual NVIDIA A10 looks at its card.")
        seen = teller.ran(["nvidia-smi"], environment)
        shown = f"0MiB / {10 * 1024}MiB"
        teller.step("look", shown=shown if shown in seen else None)
        teller.title(f"2. It takes memory, {CHUNK_MIB} MiB at a time, until it is refused.")
        said = teller.ran(["alloc_until_refused", f"--chunk-mib={CHUNK_MIB}"], environment)
        taken, refusal = said.count(" allocated"), said.splitlines()[-1].rpartition(": ")[2]
        teller.step("limit", allocated_mib=taken * CHUNK_MIB, refusal=refusal)
    asked = " and ".join(f"{tenant.cores_percent} %" for tenant in TENANTS)
    teller.title(f"3. Two tenants keep one card busy, side by side; they may have {asked} of it.")
    reached = run_side_by_side(TENANTS, SHARES_S, teller.live_console)
    teller.step("shares", tenants=[one.told() for one in reached])
    teller.summary(taken * CHUNK_MIB, refusal, reached)
    sweep_runs(own_folder(os.environ))


class Teller:
    """Tells each step as a story for a person, or as JSON lines."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._console = Console(highlight=False)

    @property
    def live_console(self) -> Console | None:
        """Where moving bars may be drawn; None where nobody would see them move."""
        return self._console if self._console.is_terminal and not self._json else None

    def title(self, text: str) -> None:
        """What comes next."""
        if not self._json:
            self._console.print(f"\n[bold]{text}[/bold]")

    def ran(self, command: Sequence[str], environment: dict[str, str]) -> str:
        """Run a program of a tenant, show and return what it said; raises CasabaError."""
        said = _run(command, environment)
        if not self._json:
            self._console.print(f"[dim]$ {' '.join(command)}[/dim]")
            sys.stdout.write(said)
        return said

    def step(self, name: str, **facts: object) -> None:
        """What a step came to, for machines."""
        if self._json:
            print(json_format.dumps({"step": name, **facts}), flush=True)

    def summary(self, taken_mib: int, refusal: str, reached: Sequence[Reached]) -> None:
        """The end of the story."""
        if self._json:
            return
        self._console.print(shares_table(reached))
        self._console.print(
            f"\n[bold]The slices held:[/bold] {taken_mib} MiB allocated and the next byte refused "
            f"({refusal}); of the card's time "
            + ", ".join(f"{one.share:.1f} % of {one.tenant.cores_percent} %" for one in reached)
            + f".\nThe same for a command of your own:\n"
            f"  casaba run --simulate --memory {MEMORY} --cores 50 -- COMMAND"
        )


@contextmanager
def one_tenant() -> Iterator[dict[str, str]]:
    """The environment of a tenant of this process's own."""
    state = simulated_host(DEFAULT_MODEL)
    settings = LocalSliceSettings(
        memory=MEMORY,
        command=(),
        driver_root=simulated_driver_dir(),
        simulated_model=DEFAULT_MODEL,
        budgets=SIMULATED_BUDGETS,
    )
    environment = make_slice(settings, os.environ, simulated_state=state)
    samples = native_dir() / "samples"
    yield {**environment, "PATH": f"{samples}:{environment['PATH']}"}


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise CasabaError(f"{command[0]} is not built: run `make native`")
    done = subprocess.run(
        [program, *command[1:]],
        env=environment,
        timeout=_STEP_TIMEOUT_S,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        raise CasabaError(f"the step `{' '.join(command)}` ended with {done.returncode}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("demo", parse_and_run)
