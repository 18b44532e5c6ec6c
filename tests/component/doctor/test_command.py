"""`casaba doctor` as people and Helm's hooks run it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from casaba.settings.host_paths import DRIVER_NAME
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.doctor.clinic import (
    NODE,
    Object,
    access,
    doctor,
    furnish,
    grant,
    kubeconfig,
    node,
    register_hami,
)
from tests.component.webhook import site as sites
from tests.component.webhook.site import Site

HOOK_RULES: list[Object] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceslices"],
        "verbs": ["list", "create"],
    },
    {"apiGroups": ["resource.k8s.io"], "resources": ["deviceclasses"], "verbs": ["list"]},
]
"""What the chart's pre-install job may do."""

CARDS = {"nvidia.com/gpu": "2"}
WITH_PLUGIN = node(capacity=CARDS, allocatable=CARDS)
"""A labelled node whose cards a device plugin offers."""

CLAIM: Object = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {},
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"driver": DRIVER_NAME, "pool": NODE, "device": "hami-gpu-0", "request": "gpu"}
                ]
            }
        },
        "reservedFor": [{"resource": "pods", "name": "tenant", "uid": "u-1"}],
    },
}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A cluster in which casaba's parts are only shown."""
    async with sites.site(tmp_path) as site:
        furnish(site)
        yield site


async def test_a_table(site: Site, tmp_path: Path) -> None:
    site.server.seed([WITH_PLUGIN])
    run = await doctor(kubeconfig(tmp_path, site))
    assert run.code == 1
    assert "✔  Kubernetes version" in run.out
    assert "✘  device plugins, old HAMi" in run.out
    assert "what to do" in run.out
    assert "\x1b" not in run.out + run.err, "no colours where there is no terminal"


async def test_the_report_of_a_program_is_stable(site: Site, tmp_path: Path) -> None:
    site.server.seed([WITH_PLUGIN])
    run = await doctor(kubeconfig(tmp_path, site), "--json")
    again = await doctor(kubeconfig(tmp_path, site), "--json")
    assert run.code == run.report["exit_code"] == 1
    assert (run.report["version"], run.report["scope"]) == (1, "cluster")
    assert run.report["findings"][0].keys() == {"id", "title", "state", "seen", "advice"}
    assert run.states() == again.states()
    assert set(run.states().values()) <= {"ok", "warning", "wrong", "unknown", "skipped"}


async def test_what_is_skipped_for_one_reason_is_told_once(tmp_path: Path) -> None:
    async with SimulatedApiServer() as server:
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(server.kubeconfig()))
        run = await doctor(f"--kubeconfig={path}")
    assert run.code == 1
    assert run.out.count("casaba is not installed") == 2
    assert re.search(r"\d+ other checks +casaba is not installed", run.out)


async def test_letters_where_there_are_only_letters(site: Site, tmp_path: Path) -> None:
    site.server.seed([WITH_PLUGIN])
    run = await doctor(kubeconfig(tmp_path, site), PYTHONIOENCODING="ascii:replace")
    assert "XX  device plugins" in run.out
    assert "ok  Kubernetes version" in run.out


async def test_before_an_installation_the_hooks_rights_are_enough(
    site: Site, tmp_path: Path
) -> None:
    await grant(site, "hook", HOOK_RULES)
    run = await doctor(kubeconfig(tmp_path, site, "hook", ()), "--preinstall")
    assert (run.code, run.err) == (0, "")
    assert run.out == "all 9 checks are well\n"


async def test_before_an_installation_a_device_plugin_is_refused_in_a_line(
    site: Site, tmp_path: Path
) -> None:
    site.server.seed([WITH_PLUGIN])
    run = await doctor(kubeconfig(tmp_path, site), "--preinstall", COLUMNS="40")
    assert run.code == 1
    (line,) = (line for line in run.out.splitlines() if line.startswith("✘"))
    assert "edge-1 (a device plugin)" in line
    assert "to do: move one node after the other" in line


async def test_before_an_installation_hamis_own_driver_is_found(site: Site, tmp_path: Path) -> None:
    (device_class,) = site.server.objects("deviceclasses")
    theirs = {"name": device_class["metadata"]["name"], "labels": {}}
    site.server.seed([{**device_class, "metadata": theirs}])
    run = await doctor(kubeconfig(tmp_path, site), "--preinstall")
    assert run.code == 1
    assert f"somebody else publishes cards as {DRIVER_NAME}: {NODE}" in run.out


async def test_before_an_installation_no_labelled_node_is_a_warning(
    site: Site, tmp_path: Path
) -> None:
    run = await doctor(kubeconfig(tmp_path, site), "--preinstall", "--node-label=gpu=off")
    assert run.code == 0
    assert "! labelled nodes: none of 1 node has the label gpu=off" in run.out


async def test_before_an_installation_every_label_counts(site: Site, tmp_path: Path) -> None:
    flags = ("--preinstall", "--node-label=gpu=on", "--node-label=site=x")
    run = await doctor(kubeconfig(tmp_path, site), *flags)
    assert run.code == 0
    assert "none of 1 node has the labels gpu=on site=x" in run.out
    assert "to do: kubectl label node NODE gpu=on site=x" in run.out


@pytest.mark.parametrize("kind", ["name", "mem", "mem-percentage", "cores", "priority"])
async def test_before_an_installation_a_class_may_stand_for_no_classic_resource(
    site: Site, tmp_path: Path, kind: str
) -> None:
    (device_class,) = site.server.objects("deviceclasses")
    other = {"metadata": {"name": "whole"}, "spec": {"extendedResourceName": "example.com/card"}}
    site.server.seed([{**device_class, **other}])
    flags = (kubeconfig(tmp_path, site), "--preinstall")
    assert (await doctor(*flags)).code == 0
    run = await doctor(*flags, f"--resource-{kind}=example.com/card")
    assert run.code == 1
    assert "whole (example.com/card): pods that ask for it may get a whole card" in run.out


async def test_before_an_installation_a_hami_that_is_gone_is_no_hindrance(
    site: Site, tmp_path: Path
) -> None:
    flags = (kubeconfig(tmp_path, site), "--preinstall")
    await register_hami(site, silent_s=60)
    assert (await doctor(*flags)).code == 1
    await register_hami(site, silent_s=600)
    assert (await doctor(*flags)).code == 0


async def test_before_an_uninstall(site: Site, tmp_path: Path) -> None:
    access_flag = kubeconfig(tmp_path, site)
    assert (await doctor(access_flag, "--preuninstall")).code == 0
    site.server.seed([CLAIM])
    refused = await doctor(access_flag, "--preuninstall")
    assert refused.code == 1
    assert "1 pod holds cards: default/tenant" in refused.out
    forced = await doctor(access_flag, "--preuninstall", "--force")
    assert forced.code == 0
    assert "default/tenant" in forced.out


async def test_one_who_may_nothing_could_not_look(site: Site, tmp_path: Path) -> None:
    assert access(site, "nobody")
    run = await doctor(kubeconfig(tmp_path, site, "nobody", ()), "--preinstall")
    assert run.code == 3
    assert "could not be looked at" not in run.out
    assert 'User "nobody" cannot list resource "nodes"' in run.out


async def test_nobody_answers(site: Site, tmp_path: Path) -> None:
    flag = kubeconfig(tmp_path, site)
    await site.server.stop()
    run = await doctor(flag, "--json")
    assert (run.code, list(run.states())) == (3, ["cluster.version"])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--bogus"], "Unknown option"),
        (["--limit=x"], "--limit"),
        (["--limit=0"], "more than 0 seconds"),
        (["--preinstall", "--preuninstall"], "give one of them"),
        (["--force"], "--preuninstall"),
        (["--preinstall", "--node"], "leave it out"),
        (["--node-label=gpu"], "KEY=VALUE"),
        (["--node-label=gpu=on", "--node-label=site"], "--node-label site"),
        (["--kubeconfig=/nowhere"], "/nowhere"),
        (["--node", "edge-1"], "no Kubernetes access"),
    ],
)
async def test_wrong_usage(flags: list[str], words: str, tmp_path: Path) -> None:
    run = await doctor(*flags, HOME=str(tmp_path))
    assert (run.code, run.out) == (2, "")
    assert words in run.err


async def test_help_is_no_failure(tmp_path: Path) -> None:
    run = await doctor("--help", HOME=str(tmp_path))
    assert run.code == 0
    assert "--preinstall" in run.out


async def test_where_there_is_no_cluster_it_looks_at_the_machine(tmp_path: Path) -> None:
    run = await doctor("--json", HOME=str(tmp_path))
    assert run.report["scope"] == "node"
    assert (await doctor("--node", "--json")).report["scope"] == "node"
