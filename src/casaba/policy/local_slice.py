"""What `casaba run` makes for a command: limits and environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import InvalidInput
from casaba.model import quantity
from casaba.model.gpu import Gpu
from casaba.model.limits import CardLimits, Policy
from casaba.settings.local_slice import LocalSliceSettings

FULL_CORES_PERCENT = 100
MAX_WEIGHT = 10_000

LOCAL_REQUEST = "local"
"""Stands where a claim's request would: the budget of the whole process tree."""


@dataclass(frozen=True, kw_only=True)
class SliceFolders:
    """What the environment must point at."""

    run: Path
    """This run's folder, with `claims/` in it."""
    guard: Path
    """The library to preload."""
    simulated_driver: Path | None = None
    """Folder of the stand-in driver's libraries and nvidia-smi."""
    simulated_state: Path | None = None
    """Folder of the virtual card's settings and state."""


def choose_gpu(gpus: Sequence[Gpu], wanted: str | None) -> Gpu:
    """The card that --gpu names by index or UUID; raises InvalidInput listing the cards."""
    if not gpus:
        raise InvalidInput("the driver serves no card; try --simulate for a virtual one")
    if wanted is None:
        return gpus[0]
    if wanted.isdecimal() and int(wanted) < len(gpus):
        return gpus[int(wanted)]
    for gpu in gpus:
        if gpu.uuid == wanted:
            return gpu
    known = ", ".join(f"{index} ({gpu.uuid})" for index, gpu in enumerate(gpus))
    raise InvalidInput(f"--gpu {wanted}: no such card; this machine has {known}")


def local_policy(settings: LocalSliceSettings, gpu: Gpu) -> Policy:
    """The budget of the process tree; raises InvalidInput for a limit that makes no sense."""
    memory = quantity.parse(settings.memory)
    if not 0 < memory <= gpu.memory_bytes:
        raise InvalidInput(
            f"--memory {settings.memory}: give more than 0 and at most "
            f"{quantity.format_binary(gpu.memory_bytes)}, the memory of {gpu.product_name}"
        )
    _check_share(settings)
    card = CardLimits(
        gpu=gpu.uuid,
        memory_bytes=memory,
        cores_percent=settings.cores_percent,
        weight=settings.weight,
        context_allowance_bytes=settings.budgets.context_allowance_bytes,
        context_size_bytes=settings.budgets.context_size_bytes,
    )
    return Policy(cards=(card,), announce=settings.announce)


def _check_share(settings: LocalSliceSettings) -> None:
    if not 0 <= settings.cores_percent <= FULL_CORES_PERCENT:
        raise InvalidInput(
            f"--cores {settings.cores_percent}: give a percentage of the card's time from 1 to 99, "
            "or 0 for no cap"
        )
    if not 0 <= settings.weight <= MAX_WEIGHT:
        raise InvalidInput(
            f"--weight {settings.weight}: give a number from 1 to {MAX_WEIGHT}, or 0 to go by cores"
        )


def slice_environment(
    environment: Mapping[str, str], folders: SliceFolders, gpu: Gpu
) -> dict[str, str]:
    """The command's environment: the given one, the guard, and what leads to the card."""
    result = dict(environment)
    result["CASABA_RUN_DIR"] = str(folders.run)
    result["LD_PRELOAD"] = _joined(folders.guard, environment.get("LD_PRELOAD"))
    result["CUDA_VISIBLE_DEVICES"] = gpu.uuid
    if folders.simulated_driver and folders.simulated_state:
        result["CASABA_SIMULATED_DIR"] = str(folders.simulated_state)
        for name in ("LD_LIBRARY_PATH", "PATH"):
            result[name] = _joined(folders.simulated_driver, environment.get(name))
    return result


def _joined(first: Path, others: str | None) -> str:
    return f"{first}:{others}" if others else str(first)
