"""What Helm makes of parts of the chart, without installing them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.errors import BedError
from tests.cluster.helm import helm

CHART = Path(__file__).parents[2] / "charts" / "casaba"
RELEASE = "casaba"
_TIMEOUT_S = 60.0

Object = dict[str, Any]


def rendered(
    namespace: str, *templates: str, values: Mapping[str, Any] | None = None
) -> list[Object]:
    """The objects of these files below `templates/`.

    Raises:
        BedError: Helm refuses them.
    """
    shown = [f"--show-only=templates/{template}" for template in templates]
    command = [str(helm()), "template", RELEASE, str(CHART), f"--namespace={namespace}", *shown]
    done = subprocess.run(
        [*command, "--values=-"],
        input=yaml.safe_dump(dict(values or {})),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise BedError(f"`helm template` failed: {done.stderr.strip()}")
    return [one for one in yaml.safe_load_all(done.stdout) if one]
