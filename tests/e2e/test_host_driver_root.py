"""A driver that the agent sees at another path than the host: the toolkit's spec is the host's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casaba.node.nvidia.toolkit import find_toolkit, generate_card_spec, move_root
from casaba.services.node_agent.host import make_cards_ready
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import NodeAgentSettings
from casaba.wire.cdi import CARD_SPEC_FILE
from tests.cluster import driver_root
from tests.cluster.build import build
from tests.cluster.settings import Card

HOOK = Path("/var/lib/casaba/bin/0123456789ab/nvidia-cdi-hook")

Spec = dict[str, Any]


def host_paths(spec: Spec) -> Iterator[str]:
    """Every path of the host that a spec names."""
    for edits in (spec["containerEdits"], *(d["containerEdits"] for d in spec["devices"])):
        yield from (mount["hostPath"] for mount in edits.get("mounts", ()))
        for node in edits.get("deviceNodes", ()):
            yield node.get("hostPath", node["path"])
        yield from (hook["path"] for hook in edits.get("hooks", ()))


def container_paths(spec: Spec) -> list[str]:
    """Every path of the container that a spec names."""
    edits = [spec["containerEdits"], *(device["containerEdits"] for device in spec["devices"])]
    mounts = [mount["containerPath"] for one in edits for mount in one.get("mounts", ())]
    return [*mounts, *(node["path"] for one in edits for node in one.get("deviceNodes", ()))]


def _programs() -> tuple[Path, Path]:
    programs = build(["toolkit"])
    return Path(programs["nvidia-ctk"]), Path(programs["nvidia-cdi-hook"])


def lay_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with one card."""
    cards, folder = [Card()], root.parent / "cards"
    driver_root.create(root, cards)
    driver_root.write_cards(folder, cards)
    monkeypatch.setenv("CASABA_SIMULATED_DIR", str(folder))


@pytest.mark.parametrize("host", ["/", "/opt/driver"])
def test_the_spec_names_the_hosts_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    seen = tmp_path / "host"
    lay_out(seen, monkeypatch)
    toolkit = find_toolkit(*_programs())
    made = generate_card_spec(toolkit, hook=HOOK, driver_root=seen, dev_root=seen)
    before = json.loads(made)
    after = json.loads(move_root(toolkit, made, seen, Path(host)))
    assert any(path.startswith(str(seen)) for path in host_paths(before))
    moved = [
        str(Path(host) / Path(path).relative_to(seen)) if path.startswith(str(seen)) else path
        for path in host_paths(before)
    ]
    assert list(host_paths(after)) == moved
    assert not any(str(seen) in path for path in moved)
    assert str(HOOK) in moved
    assert container_paths(after) == container_paths(before)
    assert [device["name"] for device in after["devices"]] == [Card().uuid, "all"]
    assert (after["kind"], after["cdiVersion"]) == (before["kind"], before["cdiVersion"])


def test_the_agent_writes_that_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "host"
    lay_out(seen, monkeypatch)
    nvidia_ctk, nvidia_cdi_hook = _programs()
    paths = HostPaths(
        run_dir=tmp_path / "run", state_dir=tmp_path / "state", cdi_dir=tmp_path / "cdi"
    )
    settings = NodeAgentSettings(
        node_name="n",
        paths=paths,
        driver_root=seen,
        host_driver_root=Path("/"),
        nvidia_ctk=nvidia_ctk,
        nvidia_cdi_hook=nvidia_cdi_hook,
    )
    assert [gpu.uuid for gpu in make_cards_ready(settings)] == [Card().uuid]
    named = list(host_paths(json.loads((paths.cdi_dir / CARD_SPEC_FILE).read_text())))
    assert not any(path.startswith(str(seen)) for path in named)
    hooks = [path for path in named if path.startswith(f"{paths.state_dir}/bin/")]
    assert hooks
    assert all(Path(hook).is_file() for hook in hooks)
    assert "/dev/nvidia0" in named
