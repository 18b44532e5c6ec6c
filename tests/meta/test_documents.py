"""What the documents say is what the programs have."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from casaba.cli import COMMANDS
from casaba.cli.node_agent import _parser

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
CASABA = Path(sys.executable).parent / "casaba"


def section(title: str) -> str:
    """The text under a heading of the reference."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.M | re.S)
    assert found, title
    return found[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented_and_helps(command: str) -> None:
    assert section(f"casaba {command}")
    said = subprocess.run([CASABA, command, "--help"], capture_output=True, text=True, check=True)
    assert "sage:" in said.stdout


def test_every_flag_of_the_agent_is_documented_and_no_other() -> None:
    actions = [a for a in _parser()._actions if not isinstance(a, argparse._HelpAction)]
    flags = {flag for action in actions for flag in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)`", section("casaba node-agent"))) == flags


def test_every_event_of_the_agent_is_documented() -> None:
    source = "".join(
        path.read_text()
        for path in (ROOT / "src" / "casaba").rglob("*.py")
        if not {"cli", "simulation"} & set(path.parts)
    )
    events = set(re.findall(r'log\.\w+\(\s*f?"([a-z_.{}]+)"', source))
    told = section("casaba node-agent")
    missing = {event for event in events if "{" not in event and f"`{event}`" not in told}
    assert missing == set()


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_targets_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z-]+[a-z])", REFERENCE + (ROOT / "README.md").read_text()))
    assert named - {"bench-"} <= targets
