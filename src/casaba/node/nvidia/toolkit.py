"""The NVIDIA Container Toolkit: it describes the cards for the container runtime, we only ask.

NVIDIA keeps `nvidia-ctk cdi generate` right for every driver, MIG, Tegra and WSL.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import HostError, InvalidInput
from casaba.node.files import explained, write_whole
from casaba.wire import cdi

_TIMEOUT_S = 60
"""For one run of nvidia-ctk."""

_EXECUTABLE = 0o755
_HOOK = "nvidia-cdi-hook"

CARD_KIND = f"{cdi.VENDOR}/{cdi.CARD_CLASS}"
"""What the spec of the cards calls its devices."""


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """The two programs of the toolkit that casaba uses."""

    nvidia_ctk: Path
    nvidia_cdi_hook: Path


def find_toolkit(nvidia_ctk: Path | None, nvidia_cdi_hook: Path | None) -> Toolkit:
    """The programs that were given, else those in PATH; raises HostError."""
    return Toolkit(
        nvidia_ctk=_program(nvidia_ctk, "nvidia-ctk", "--nvidia-ctk"),
        nvidia_cdi_hook=_program(nvidia_cdi_hook, _HOOK, "--nvidia-cdi-hook"),
    )


def _program(given: Path | None, name: str, flag: str) -> Path:
    found = shutil.which(str(given or name))
    if found is None:
        where = f"at {given}" if given else "in PATH"
        raise HostError(
            f"no {name} {where}: install the NVIDIA Container Toolkit (package "
            f"nvidia-container-toolkit, 1.18 or newer), or give its path with {flag}"
        )
    return Path(found)


def install_hook(source: Path, state_dir: Path) -> Path:
    """Put the hook where the container runtime finds it on the host; raises HostError.

    Named by content, so that an upgrade never rewrites one that a spec names.
    """
    with explained("read", source):
        program = source.read_bytes()
    version = hashlib.sha256(program).hexdigest()[:12]
    target = state_dir / "bin" / version / _HOOK
    if not target.exists():
        write_whole(target, program, mode=_EXECUTABLE, durable=True)
    return target


def generate_card_spec(toolkit: Toolkit, *, hook: Path, driver_root: Path, dev_root: Path) -> bytes:
    """The CDI spec of all cards as `casaba.dev/card=<uuid>`; raises HostError with its words."""
    command = [
        str(toolkit.nvidia_ctk),
        *("cdi", "generate", "--mode", "nvml", "--format", "json"),
        *("--device-name-strategy", "uuid"),
        *("--vendor", cdi.VENDOR, "--class", cdi.CARD_CLASS),
        *("--driver-root", str(driver_root), "--dev-root", str(dev_root)),
        *("--nvidia-cdi-hook-path", str(hook)),
    ]
    return _checked(_output(command))


def move_root(toolkit: Toolkit, spec: bytes, seen: Path, host: Path) -> bytes:
    """The spec for a container runtime that has at `host` what nvidia-ctk saw at `seen`.

    Only paths of the host below `seen` change: those of the driver, not that of the hook. Raises
    HostError.
    """
    with explained("make a folder in", Path(tempfile.gettempdir())):
        folder = tempfile.TemporaryDirectory(prefix="casaba-")
    with folder as name:
        moved = Path(name) / "card.json"  # the form follows from the name
        command = [
            *(str(toolkit.nvidia_ctk), "--quiet", "cdi", "transform", "root"),
            *("--from", str(seen), "--to", str(host)),
            *("--input", "-", "--output", str(moved)),
        ]
        _output(command, spec)
        with explained("read", moved):
            return _checked(moved.read_bytes())


def _output(command: list[str], given: bytes = b"") -> bytes:
    try:
        result = subprocess.run(
            command, input=given, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{command[0]} did not run: {error}") from error
    if result.returncode != 0:
        words = result.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise HostError(f"{' '.join(command)} failed: {' | '.join(words)}")
    return result.stdout


def _checked(spec: bytes) -> bytes:
    if (kind := _kind(spec)) is None:
        raise HostError(f"nvidia-ctk made no CDI spec: {spec[:80]!r}")
    if kind != CARD_KIND:
        raise HostError(f"nvidia-ctk made devices of kind {kind!r}; is it older than 1.14?")
    return spec


def read_card_spec(path: Path) -> bytes:
    """A CDI spec that somebody else made of the cards; raises HostError and InvalidInput."""
    with explained("read", path):
        spec = path.read_bytes()
    if (kind := _kind(spec)) != CARD_KIND:
        raise InvalidInput(
            f"--card-spec {path}: its kind is {kind or 'missing'}, it must be {CARD_KIND}; make it "
            f"with nvidia-ctk cdi generate --vendor {cdi.VENDOR} --class {cdi.CARD_CLASS} "
            "--device-name-strategy uuid --format json"
        )
    return spec


def _kind(spec: bytes) -> str | None:
    try:
        kind = json.loads(spec)["kind"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(kind)
