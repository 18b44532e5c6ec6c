"""How containerd is set up: from its program where it is at hand, else from its file."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from casaba.policy.diagnosis.host.observations import RuntimeSeen
from casaba.settings.doctor import DoctorSettings

_PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")
"""Sections with `enable_cdi`: of configuration version 3, and of 2."""

_ANSWER_S = 5.0
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+\S*)")


def look_at_containerd(settings: DoctorSettings) -> RuntimeSeen:
    """Raises OSError for a file that may not be read, and ValueError for one that is no TOML."""
    program = shutil.which("containerd") if settings.host_root == Path("/") else None
    file = settings.host_root / str(settings.containerd_config).lstrip("/")
    configured = _configured(program, file)
    source, content = configured if configured else (None, "")
    return RuntimeSeen(
        version=_version(program) if program else None,
        source=source,
        cdi_enabled=cdi_enabled(content),
    )


def cdi_enabled(content: str) -> bool | None:
    """What a configuration says of CDI; None: nothing. Raises ValueError for what is no TOML."""
    plugins = tomllib.loads(content).get("plugins")
    for name in _PLUGINS:
        section: Any = plugins.get(name) if isinstance(plugins, dict) else None
        value = section.get("enable_cdi") if isinstance(section, dict) else None
        if isinstance(value, bool):
            return value
    return None


def _configured(program: str | None, file: Path) -> tuple[str, str] | None:
    """Where it was read, and the text; the program also knows what other files add."""
    if program and (dumped := _output(program, "--config", str(file), "config", "dump")):
        return f"{file} (containerd config dump)", dumped
    if file.exists():
        return str(file), file.read_text()
    return None


def _version(program: str) -> str | None:
    found = _VERSION.search(_output(program, "--version") or "")
    return found[1] if found else None


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
