"""The steps of `casaba run`, up to the point where the command takes this process's place."""

import os
import shutil
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from casaba.errors import HostError, InvalidInput, NoSuchProgram
from casaba.model.gpu import Gpu
from casaba.node.budgets import ensure_budget
from casaba.node.files import explained
from casaba.node.guard_library import native_dir
from casaba.node.nvidia.discovery import discover_gpus
from casaba.node.run_folders import new_run, own_folder, sweep_runs
from casaba.node.schedules import ensure_schedule
from casaba.policy.local_slice import (
    LOCAL_REQUEST,
    SliceFolders,
    choose_gpu,
    local_policy,
    slice_environment,
)
from casaba.settings import _host_paths as fixed
from casaba.settings.host_paths import GUARD_LIBRARY
from casaba.settings.local_slice import LocalSliceSettings

NOTICE = (
    "casaba run: the limit holds for programs that keep LD_PRELOAD; a local process can take it "
    "off. In containers it can't."
)


def run_command(
    settings: LocalSliceSettings,
    environment: Mapping[str, str],
    *,
    simulated_state: Path | None = None,
    quiet: bool = False,
) -> NoReturn:
    """Make the slice, then become the command: its exit code, signals and terminal are ours.

    Raises CasabaError when the slice can't be made or the command is not there.
    """
    if not settings.command:
        raise InvalidInput("no command: casaba run --memory 10Gi -- COMMAND [ARGUMENT…]")
    program = _find_program(settings.command[0], environment, simulated=bool(simulated_state))
    environment = make_slice(settings, environment, simulated_state=simulated_state)
    if not quiet:
        print(NOTICE, file=sys.stderr, flush=True)
    _become(program, settings.command, environment)


def make_slice(
    settings: LocalSliceSettings,
    environment: Mapping[str, str],
    *,
    simulated_state: Path | None = None,
) -> dict[str, str]:
    """Make the run's folder with policy and region; returns the command's environment.

    The slice lives as long as this process and its children.
    """
    gpu = _choose(settings)
    folder = own_folder(environment)
    sweep_runs(folder)
    run = new_run(folder)
    _join_schedule(folder, run, gpu)
    budget = run / fixed.CLAIMS / str(uuid.uuid4()) / LOCAL_REQUEST
    ensure_budget(budget, local_policy(settings, gpu))
    simulated = simulated_driver_dir() if simulated_state else None
    folders = SliceFolders(
        run=run,
        guard=native_dir() / GUARD_LIBRARY,
        simulated_driver=simulated,
        simulated_state=simulated_state,
    )
    return slice_environment(environment, folders, gpu)


def _join_schedule(folder: Path, run: Path, gpu: Gpu) -> None:
    """All runs of a user share the schedules of the cards."""
    schedules = folder / fixed.GPUS
    ensure_schedule(schedules / gpu.uuid, gpu.uuid)
    with explained("make link", run / fixed.GPUS):
        (run / fixed.GPUS).symlink_to(schedules)


def _choose(settings: LocalSliceSettings) -> Gpu:
    gpus = discover_gpus(settings.driver_root, Path("/sys"))
    return choose_gpu(gpus, settings.gpu)


def simulated_driver_dir() -> Path:
    """The stand-in driver's libraries and its nvidia-smi; raises HostError."""
    return native_dir() / "simulated_driver"


def _find_program(name: str, environment: Mapping[str, str], *, simulated: bool) -> str:
    path = environment.get("PATH", os.defpath)
    program = shutil.which(name, path=f"{simulated_driver_dir()}:{path}" if simulated else path)
    if program is None:
        raise NoSuchProgram(f"{name}: no such program in {path}")
    return program


def _become(program: str, command: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    try:
        os.execve(program, command, environment)
    except OSError as error:
        raise HostError(f"{program}: {error.strerror}") from error
