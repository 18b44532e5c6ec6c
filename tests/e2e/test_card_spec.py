"""The recorded CDI spec of virtual cards says what the real toolkit says of the bed's driver."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

from casaba.simulation.card_spec import card_spec
from casaba.simulation.gpu_host import virtual_cards
from tests.cluster.bed import Bed

Spec = dict[str, Any]


def files_in_container(spec: Spec) -> set[str]:
    """What a container finds: the mounts, and the names that the toolkit's hook links to them."""
    edits = spec["containerEdits"]
    found = {mount["containerPath"] for mount in edits["mounts"]}
    arguments = [word for hook in edits.get("hooks", ()) for word in hook["args"]]
    links = [word for word in arguments if "::" in word]
    return found | {link.partition("::")[2] for link in links}


def test_the_recorded_spec_is_the_toolkits(bed: Bed, tmp_path: Path) -> None:
    made = bed.node("edge-1").folder / "run" / "cdi" / "casaba.dev-card.json"
    real = json.loads(made.read_text())
    recorded = json.loads(card_spec(virtual_cards(["A10"]), tmp_path))
    assert recorded["kind"] == real["kind"]
    assert recorded["cdiVersion"] == real["cdiVersion"]
    names = [[device["name"] for device in spec["devices"]] for spec in (recorded, real)]
    assert names[0] == names[1]
    assert recorded["containerEdits"]["env"] == real["containerEdits"]["env"]
    assert files_in_container(recorded) <= files_in_container(real)
    options = {tuple(m["options"]) for s in (recorded, real) for m in s["containerEdits"]["mounts"]}
    assert len(options) == 1
    shown = {PurePath(path).name for path in files_in_container(recorded)}
    assert shown == {"libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"}
