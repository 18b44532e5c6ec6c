"""`casaba demo`: a slice of a virtual card, and that it holds."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclopts import App
from rich.console import Console

from casaba.cli.exits import exit_code_of
from casaba.cli.run import DEFAULT_MODEL, SIMULATED_BUDGETS, simulated_host
from casaba.errors import CasabaError
from casaba.node.guard_library import native_dir
from casaba.node.run_folders import own_folder, sweep_runs
from casaba.services.local_slice.main import make_slice, simulated_driver_dir
from casaba.settings.local_slice import LocalSliceSettings

MEMORY = "10Gi"
CHUNK_MIB = 1024
_STEP_TIMEOUT_S = 60

app = App(name="casaba demo", help="See a slice hold, on a virtual card.", version_flags=[])


@app.default
def demo() -> None:
    """See a slice hold, on a virtual card: no GPU, no cluster, no root."""
    console = Console(highlight=False)
    state = simulated_host(DEFAULT_MODEL)
    settings = LocalSliceSettings(
        memory=MEMORY,
        command=(),
        driver_root=simulated_driver_dir(),
        simulated_model=DEFAULT_MODEL,
        budgets=SIMULATED_BUDGETS,
    )
    environment = make_slice(settings, os.environ, simulated_state=state)
    for title, command in _steps():
        console.print(f"\n[bold]{title}[/bold]\n[dim]$ {' '.join(command)}[/dim]")
        _show(command, environment)
    console.print(
        f"\n[bold]The slice held.[/bold] The same for a command of your own:\n"
        f"  casaba run --simulate --memory {MEMORY} -- COMMAND"
    )
    sweep_runs(own_folder(os.environ))


def _steps() -> Iterator[tuple[str, Sequence[str]]]:
    yield (
        f"1. A tenant with {MEMORY} of a virtual NVIDIA A10 (23028 MiB) looks at its card.",
        ["nvidia-smi"],
    )
    yield (
        f"2. It takes memory, {CHUNK_MIB} MiB at a time, until it is refused.",
        ["alloc_until_refused", f"--chunk-mib={CHUNK_MIB}"],
    )
    yield (
        "3. Its process is gone, and so is what it had.",
        ["nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv"],
    )


def _show(command: Sequence[str], environment: dict[str, str]) -> None:
    """Run one step with its output on our terminal; raises CasabaError if it fails."""
    sys.stdout.flush()
    samples = native_dir() / "samples"
    search = {**environment, "PATH": f"{samples}:{environment['PATH']}"}
    program = _found(command[0], search["PATH"])
    result = subprocess.run(
        [program, *command[1:]], env=search, timeout=_STEP_TIMEOUT_S, check=False
    )
    if result.returncode != 0:
        raise CasabaError(f"the step `{' '.join(command)}` ended with {result.returncode}")


def _found(name: str, path: str) -> Path:
    for folder in path.split(":"):
        if (program := Path(folder) / name).is_file():
            return program
    raise CasabaError(f"{name} is not built: run `make native`")


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("demo", parse_and_run)
