"""The pinned list holds what pyproject.toml names."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def name(requirement: str) -> str:
    """A requirement's project name, normalised (PEP 503)."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = {name(line) for line in lines if "==" in line}
    assert {name(requirement) for requirement in wanted} <= pinned
