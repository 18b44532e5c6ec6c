"""The images hold what their programs import, and are built as the rules say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from tools import sbom

ROOT = Path(__file__).parents[2]
IMAGES = ("node-agent", "control-plane")
# What each image starts, as modules that import everything which that needs.
PROGRAMS = {
    "node-agent": (
        "casaba.cli.node_agent",
        "casaba.services.node_agent.main",
        "casaba.cli.smi",
        "casaba.cli.smi_node",
    ),
    "control-plane": (
        "casaba.cli.webhook",
        "casaba.services.webhook.main",
        "casaba.cli.controller",
        "casaba.services.controllers.main",
        "casaba.cli.doctor",
        "casaba.services.doctor.main",
    ),
}
# Imported late: by commands for people, and to read a kubeconfig.
ALSO = ("cyclopts", "rich", "pyyaml")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {
        canonical(name): version for name, _, version in (line.partition("==") for line in lines)
    }


def requirements(image: str) -> dict[str, str]:
    return pinned(ROOT / "images" / image / "requirements.txt")


def imported(modules: tuple[str, ...]) -> set[str]:
    """The distributions that a fresh interpreter has loaded after importing some modules."""
    script = (
        f"import sys; before = {{*sys.modules}}; import {', '.join(modules)}; "
        "print(*{module.partition('.')[0] for module in {*sys.modules} - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    owners = packages_distributions()
    found = {owner for top in done.stdout.split() for owner in owners.get(top, ())}
    return {canonical(name) for name in found}


def needs(name: str) -> set[str]:
    """What a distribution requires on Linux with this Python, without extras."""
    lines = [line for line in requires(name) or () if "extra ==" not in line]
    here = [line for line in lines if _holds(line.partition(";")[2])]
    return {canonical(re.split(r"[\s\[<>=!~;(]", line, maxsplit=1)[0]) for line in here}


def _holds(marker: str) -> bool:
    from packaging.markers import Marker

    return not marker.strip() or Marker(marker).evaluate()


@pytest.mark.parametrize("image", IMAGES)
def test_versions_are_those_that_are_tested(image: str) -> None:
    everything = pinned(ROOT / "requirements.txt")
    assert requirements(image).items() <= everything.items()


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_imported_is_there(image: str) -> None:
    assert imported(PROGRAMS[image]) - {"casaba"} <= requirements(image).keys()


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_there_for_nothing(image: str) -> None:
    wanted = {*imported(PROGRAMS[image]), *ALSO} - {"casaba"}
    while more := {need for name in wanted for need in needs(name)} - wanted:
        wanted |= more
    assert requirements(image).keys() <= wanted


@pytest.mark.parametrize("image", IMAGES)
def test_a_dockerfile_keeps_the_rules(image: str) -> None:
    text = (ROOT / "images" / image / "Dockerfile").read_text()
    first = next(line for line in text.splitlines() if not line.startswith("#"))
    assert first == "ARG BASE"
    assert "latest" not in text
    build, _, final = text.partition("\nFROM ${BASE}\n")
    assert "\nRUN " in build
    assert "\nRUN " not in final, "pip, compilers or emulation would be needed"
    assert "SOURCE_DATE_EPOCH" in build
    assert "ARG TARGETARCH" in build
    assert "tools/sbom.py" in build
    (user,) = re.findall(r"^USER (\S+)$", final, re.MULTILINE)
    assert user == ("0:0" if image == "node-agent" else "65532:65532")


@pytest.mark.parametrize("image", IMAGES)
def test_what_a_dockerfile_copies_is_there(image: str) -> None:
    text = (ROOT / "images" / image / "Dockerfile").read_text()
    for words in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source


def test_scripts_are_shell() -> None:
    for script in [*(ROOT / "images" / "build").iterdir(), ROOT / "images" / "base" / "make"]:
        shell = script.read_text().splitlines()[0].removeprefix("#!")
        subprocess.run([shell, "-n", script], check=True)


def test_the_bill_names_this_environment() -> None:
    site = Path(sys.prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    bill = sbom.document("test", sbom.python_packages(site / "site-packages"))
    urls = {component["purl"] for component in bill["components"]}
    expected = pinned(ROOT / "requirements.txt")
    assert f"pkg:pypi/aiohttp@{expected['aiohttp']}" in urls
    assert f"pkg:pypi/typing-extensions@{expected['typing-extensions']}" in urls
    assert bill["bomFormat"] == "CycloneDX"
    assert list(urls) != []


def test_the_bill_is_the_same_each_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, modules = tmp_path / "status", tmp_path / "modules"
    status.write_text(
        "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"
    )
    modules.write_text(
        "/out/nvidia-ctk: go1.26.6\n\tpath\texample.com/x/cmd\n\tmod\texample.com/x\tv1.2.0\t\n"
        "\tdep\texample.com/y\tv0.1.0\th1:=\n\tbuild\tCGO_ENABLED=1\n"
    )
    words = ["--name", "a", "--dpkg-status", str(status), "--go-modules", str(modules)]
    texts = []
    for _ in range(2):
        assert sbom.main(words) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert [component["purl"] for component in json.loads(texts[0])["components"]] == [
        "pkg:deb/debian/libc6@2.36-9?arch=amd64",
        "pkg:golang/example.com/x@v1.2.0",
        "pkg:golang/example.com/y@v0.1.0",
    ]
