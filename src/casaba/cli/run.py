"""`casaba run --memory 10Gi [--gpu 0|UUID] [--simulate[=MODEL]] -- COMMAND …`"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from casaba.cli.exits import exit_code_of
from casaba.model.quantity import parse
from casaba.node.run_folders import own_folder
from casaba.services.local_slice.main import run_command, simulated_driver_dir
from casaba.settings.budgets import BudgetSettings
from casaba.settings.local_slice import LocalSliceSettings
from casaba.simulation.gpu_host import enter_gpu_host, host_folder, make_gpu_host, virtual_cards

DEFAULT_MODEL = "A10"
SIMULATED_BUDGETS = BudgetSettings(context_size_bytes=0)
"""A virtual card's contexts take nothing, unless its settings say so."""

app = App(
    name="casaba run",
    help="Give a command and all that it starts a slice of a card, here and now.",
    version_flags=[],
    help_epilogue="Example: casaba run --simulate --memory 10Gi -- nvidia-smi",
)


@app.default
def run(
    *command: str,
    memory: str,
    cores: int = 0,
    weight: int = 0,
    gpu: str | None = None,
    simulate: str | None = None,
    driver_root: Path = Path("/"),
    context_size: str | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
) -> None:
    """Give a command and all that it starts a slice of a card, here and now.

    Parameters
    ----------
    command:
        Program and arguments, after `--`.
    memory:
        Memory of the card that they may use together, as a quantity: 10Gi, 512Mi.
    cores:
        Share of the card's time that they get at most, in percent; 0 and 100: no cap.
    weight:
        Their share of the card's time while other slices want it too; 0: by cores.
    gpu:
        Which card: NVML index or UUID. The first one if not given.
    simulate:
        Supply a virtual card (A10, T4, L4 or H200; A10 if no model is given) instead of a real one.
    driver_root:
        Root of the NVIDIA driver's files.
    context_size:
        What one CUDA context is taken to cost, as a quantity. For a real card 256Mi if not given,
        for a virtual one what it takes.
    quiet:
        Leave out the notice on what the limit binds.
    """
    state = simulated_host(simulate) if simulate else None
    settings = LocalSliceSettings(
        memory=memory,
        command=command,
        cores_percent=cores,
        weight=weight,
        gpu=gpu,
        driver_root=simulated_driver_dir() if simulate else driver_root,
        simulated_model=simulate,
        budgets=_budgets(context_size, simulated=simulate is not None),
    )
    run_command(settings, os.environ, simulated_state=state, quiet=quiet)


def _budgets(context_size: str | None, *, simulated: bool) -> BudgetSettings:
    if context_size is not None:
        return BudgetSettings(context_size_bytes=parse(context_size))
    return SIMULATED_BUDGETS if simulated else BudgetSettings()


def simulated_host(model: str) -> Path:
    """The user's host with one virtual card of a model, which this process enters too."""
    cards = virtual_cards([model])
    folder = host_folder(own_folder(os.environ), model, simulated_driver_dir())
    make_gpu_host(folder, cards)
    enter_gpu_host(folder)
    return folder


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code if the command could not be started."""
    return exit_code_of("run", lambda: _parse_and_run(with_default_model(arguments)))


def _parse_and_run(arguments: Sequence[str]) -> None:
    app(arguments, result_action="return_value")


def with_default_model(arguments: Sequence[str]) -> list[str]:
    """`--simulate` alone means `--simulate=A10`; what follows `--` is the command's own."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    own = [f"--simulate={DEFAULT_MODEL}" if word == "--simulate" else word for word in words[:end]]
    return own + words[end:]
