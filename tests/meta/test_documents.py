"""What the documents say is what the programs have."""

import argparse
import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from cyclopts import App

from casaba.cli import COMMANDS
from casaba.errors import InvalidInput
from casaba.model.quantity import parse
from casaba.policy.convert import card_choice, environment, scheduling_wishes
from casaba.policy.diagnosis.cluster.tables import CLUSTER_CHECKS, PREINSTALL_CHECKS
from casaba.policy.diagnosis.cluster.uninstall import uninstall_checks
from casaba.policy.diagnosis.host.tables import HOST_CHECKS
from casaba.settings.conversion import ConversionSettings
from casaba.settings.uninstall import HelmRelease
from tests.meta.pages import CLASSIC_PODS, PAGES, REFERENCE, ROOT, SOURCE, chapter, names, tables

CASABA = Path(sys.executable).parent / "casaba"

COMMON = "Events of every daemon"
SHARED_ROOMS = ("aiokit", "kube", "net", "node")
SECTION_OF_SERVICE = {
    "controllers": "casaba controller",
    "doctor": "casaba doctor",
    "local_slice": "casaba run",
    "node_agent": "casaba node-agent",
    "uninstall": "casaba uninstall",
    "webhook": "casaba webhook",
}
LEVELS = ("info", "warning", "error", "exception", "critical", "log")
"""What `debug` says is for developers."""


def section(title: str) -> str:
    """The text under a heading of the reference."""
    return chapter(REFERENCE, title)


TOLD_COMMANDS = re.findall(r"^## casaba (\S+)$", REFERENCE, re.M)


def module_of(command: str) -> ModuleType:
    return importlib.import_module(f"casaba.cli.{command.replace('-', '_')}")


def test_every_command_is_documented() -> None:
    assert set(COMMANDS) <= set(TOLD_COMMANDS)
    for command in TOLD_COMMANDS:
        assert callable(module_of(command).main)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps(command: str) -> None:
    said = subprocess.run([CASABA, command, "--help"], capture_output=True, text=True, check=True)
    assert "sage:" in said.stdout


@cache
def flags_of(command: str) -> Mapping[str, object]:
    """The command's flags, and their defaults; short forms are left out."""
    module = module_of(command)
    if isinstance(app := getattr(module, "app", None), App):
        return {
            name: argument.field_info.default
            for argument in app.assemble_argument_collection()
            for name in argument.names
            if name.startswith("--")
        }
    return {
        flag: action.default
        for action in module._parser()._actions
        if not isinstance(action, argparse._HelpAction)
        for flag in action.option_strings
    }


@pytest.mark.parametrize("command", TOLD_COMMANDS)
def test_every_flag_is_documented_and_no_other(command: str) -> None:
    told = re.findall(r"(?<![\w-])--[a-z][a-z-]*", section(f"casaba {command}"))
    assert set(told) == set(flags_of(command))


def flag_rows() -> Iterator[tuple[str, str, str]]:
    """Command, flag and told default."""
    for command in TOLD_COMMANDS:
        for cells in tables(section(f"casaba {command}"), "flag"):
            if len(cells) == 3:
                yield from ((command, flag, cells[1]) for flag in names(cells[0]))


def is_the_default(told: str, default: object) -> bool:
    """Whether a cell tells a default; what comes from the environment is not told apart."""
    if told.startswith("`$"):
        return True
    if default is None or isinstance(default, bool) or default == []:
        return not told or f"`{default}`" not in told
    (value,) = names(told) or [""]
    if value == str(default) or (value,) == default:
        return True
    try:
        return parse(value) == parse(str(default))
    except InvalidInput:
        return False


@pytest.mark.parametrize(("command", "flag", "told"), [*flag_rows()])
def test_every_default_is_the_real_one(command: str, flag: str, told: str) -> None:
    assert is_the_default(told, flags_of(command)[flag])


def test_every_check_of_the_doctor_is_documented_and_no_other() -> None:
    of_cluster = (
        *CLUSTER_CHECKS,
        *PREINSTALL_CHECKS,
        *uninstall_checks(HelmRelease(), by_force=False),
    )
    ids = {one.id for one in of_cluster} | {one.id for one in HOST_CHECKS}
    text = section("casaba doctor")
    rows = [*tables(text, "check of a cluster"), *tables(text, "check of a node")]
    assert {name for cells in rows for name in names(cells[0])} == ids


def sources(*rooms: str) -> Iterator[ast.Module]:
    for room in rooms:
        for path in sorted((SOURCE / room).rglob("*.py")):
            yield ast.parse(path.read_text())


def patterns_of(argument: ast.expr) -> Iterator[re.Pattern[str]]:
    """What a text can be that is constant, formatted, or one of two."""
    if isinstance(argument, ast.IfExp):
        yield from patterns_of(argument.body)
        yield from patterns_of(argument.orelse)
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield re.compile(re.escape(argument.value))
    if isinstance(argument, ast.JoinedStr):
        parts = [
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z_]+"
            for part in argument.values
        ]
        yield re.compile("".join(parts))


def is_log_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
        and node.func.attr in LEVELS
    )


def logged(*rooms: str) -> set[re.Pattern[str]]:
    """The events that modules log."""
    return {
        pattern
        for module in sources(*rooms)
        for call in ast.walk(module)
        if isinstance(call, ast.Call) and is_log_call(call)
        for argument in call.args
        for pattern in patterns_of(argument)
    }


def told_events(title: str) -> set[str]:
    return {name for cells in tables(section(title), "event") for name in names(cells[0])}


def assert_same(patterns: Iterable[re.Pattern[str]], told: set[str]) -> None:
    patterns = set(patterns)
    assert {one.pattern for one in patterns if not any(map(one.fullmatch, told))} == set()
    assert {name for name in told if not any(one.fullmatch(name) for one in patterns)} == set()


def test_every_service_has_a_section() -> None:
    services = {path.parent.name for path in (SOURCE / "services").glob("*/__init__.py")}
    assert services == set(SECTION_OF_SERVICE)


@pytest.mark.parametrize(("service", "title"), SECTION_OF_SERVICE.items())
def test_every_event_of_a_service_is_documented_and_no_other(service: str, title: str) -> None:
    assert_same(logged(f"services/{service}"), told_events(title))


def test_every_event_of_the_shared_rooms_is_documented_and_no_other() -> None:
    assert_same(logged(*SHARED_ROOMS), told_events(COMMON))


def test_rooms_that_decide_log_nothing() -> None:
    assert logged("policy", "wire", "model", "settings") == set()


def test_every_problem_of_the_agent_is_documented_and_no_other() -> None:
    problems = {
        keyword.value.value
        for module in sources("policy", "services/node_agent")
        for call in ast.walk(module)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Problem"
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant)
    }
    rows = tables(section("casaba node-agent"), "problem")
    assert {name for cells in rows for name in names(cells[0])} == problems


def test_every_classic_option_is_documented() -> None:
    options = (
        *ConversionSettings().resources,
        *card_choice.CHOOSING,
        *scheduling_wishes.GPU_POLICIES,
        *scheduling_wishes.NODE_POLICIES,
        scheduling_wishes.GPU_POLICY,
        scheduling_wishes.NODE_POLICY,
        scheduling_wishes.WEIGHTS,
        scheduling_wishes.NUMA_BIND,
        scheduling_wishes.MODE,
        scheduling_wishes.HAMI_SCHEDULER,
        environment.CORE_POLICY_VARIABLE,
        environment.DISABLE_VARIABLE,
    )
    words = set(re.findall(r"[\w.-]+(?:/[\w.-]+)?", CLASSIC_PODS))
    assert set(options) <= words


def anchor(heading: str) -> str:
    """GitHub's name of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.M)}


def links() -> Iterator[tuple[Path, str, str]]:
    for page in PAGES:
        for path, place in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            yield page, path, place


def test_links_lead_somewhere() -> None:
    for page, path, place in links():
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {path}"
        assert not place or place in anchors(target), f"{page.name}: {path}#{place}"


def test_make_targets_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z-]+[a-z])", REFERENCE + (ROOT / "README.md").read_text()))
    assert named - {"bench-"} <= targets
