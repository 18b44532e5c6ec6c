"""Hatchling's hook: a wheel carries the native parts for both architectures.

An editable install builds nothing; there `make native` does.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs native/Makefile before the files of a wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build for a standard wheel; raises CalledProcessError when the compiler fails."""
        if version == "editable":
            return
        native = Path(self.root) / "native"
        subprocess.run(["make", "-s", "-C", native, f"PYTHON={sys.executable}", "all"], check=True)
