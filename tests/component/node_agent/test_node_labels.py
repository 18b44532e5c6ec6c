"""Which nodes an agent serves, by their labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casaba.cli import node_agent
from casaba.errors import CasabaError, HostError, InvalidInput
from casaba.services.node_agent.main import run_node_agent
from casaba.simulation.api_server.server import SimulatedApiServer

POOL = ("--node-label=gpu=on", "--node-label=pool=cards")


async def refusal(folder: Path, labels: dict[str, str], *flags: str) -> CasabaError:
    """Why the agent of a node with these labels ends; the last reason is that it has no toolkit."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-1", "labels": labels}}
    kubeconfig = folder / "kubeconfig"
    words = ["--node-name=edge-1", f"--kubeconfig={kubeconfig}", "--nvidia-ctk=/none", *flags]
    async with SimulatedApiServer() as server:
        server.seed([node])
        kubeconfig.write_text(json.dumps(server.kubeconfig("agent", ["system:masters"])))
        settings = node_agent.settings_from(node_agent._parser().parse_args(words))
        with pytest.raises(CasabaError) as raised:
            await run_node_agent(settings)
    return raised.value


@pytest.mark.parametrize(
    ("labels", "flags"),
    [
        ({"gpu": "on"}, ()),
        ({"gpu": "on", "pool": "cards"}, POOL),
        ({"gpu": "yes"}, ("--node-label=gpu=yes",)),
        ({"node-role.kubernetes.io/gpu": ""}, ("--node-label=node-role.kubernetes.io/gpu=",)),
    ],
)
async def test_a_node_with_all_labels_is_served(
    labels: dict[str, str], flags: tuple[str, ...], tmp_path: Path
) -> None:
    assert isinstance(await refusal(tmp_path, labels, *flags), HostError)


@pytest.mark.parametrize(
    ("labels", "flags", "lacking"),
    [
        ({}, (), "gpu=on"),
        ({"gpu": "off"}, (), "gpu=on"),
        ({"gpu": "on"}, ("--node-label=gpu=yes",), "gpu=yes"),
        ({"gpu": "on"}, POOL, "pool=cards"),
        (
            {"other": ""},
            ("--node-label=node-role.kubernetes.io/gpu=",),
            "node-role.kubernetes.io/gpu=",
        ),
    ],
)
async def test_a_node_that_lacks_one_is_not(
    labels: dict[str, str], flags: tuple[str, ...], lacking: str, tmp_path: Path
) -> None:
    error = await refusal(tmp_path, labels, *flags)
    assert isinstance(error, InvalidInput)
    assert str(error) == (
        f"node edge-1 has no label {lacking}: nothing is published; "
        f"to offer its cards: kubectl label node edge-1 {lacking}"
    )


async def test_all_that_are_lacking_are_told(tmp_path: Path) -> None:
    told = str(await refusal(tmp_path, {}, *POOL))
    assert told.startswith("node edge-1 has no label gpu=on, pool=cards: ")
    assert told.endswith("kubectl label node edge-1 gpu=on pool=cards")


@pytest.mark.parametrize("text", ["gpu", "=on", ""])
def test_a_label_has_a_key_and_a_value(text: str) -> None:
    flags = node_agent._parser().parse_args([f"--node-label={text}"])
    with pytest.raises(InvalidInput, match="KEY=VALUE, such as gpu=on"):
        node_agent.settings_from(flags)
