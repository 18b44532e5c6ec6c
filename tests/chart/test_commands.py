"""What the chart starts is what the programs understand, by their own parsers."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from casaba.cli import node_agent, node_clean
from casaba.settings.uninstall import UninstallSettings
from tests.chart.rendering import NAMESPACE, Object, Rendered, containers, rendered
from tests.chart.test_objects import MATRIX

COMMANDS = ("node-agent", "webhook", "controller")
KUBELETS = [
    (),
    *(
        (f'drivers.nvidia.kubeletDir="{folder}"',)
        for folder in ("/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet", "/k")
    ),
]


def started(chart: Rendered, command: str) -> Iterator[tuple[Object, Object]]:
    """Containers that run a command, with the spec of their pod."""
    for _, pod in chart.pods():
        for container in containers(pod):
            if container.get("args", [""])[0] == command:
                yield pod, container


def parsed(command: str, words: list[str]) -> argparse.Namespace:
    """What the program reads from them; raises SystemExit, as it would."""
    module = importlib.import_module(f"casaba.cli.{command.replace('-', '_')}")
    flags: argparse.Namespace = module._parser().parse_args(words)
    module.settings_from(flags)
    return flags


@pytest.mark.parametrize("case", MATRIX)
@pytest.mark.parametrize("command", COMMANDS)
def test_flags_are_understood(command: str, case: str) -> None:
    found = list(started(rendered(*MATRIX[case]), command))
    assert found or (command, case) == ("node-agent", "no agent")
    for _, container in found:
        parsed(command, container["args"][1:])


@pytest.mark.parametrize("case", MATRIX)
def test_the_doctor_understands_its_flags(case: str) -> None:
    from casaba.cli.doctor import app

    jobs = list(started(rendered("uninstall.force=true", *MATRIX[case]), "doctor"))
    assert jobs
    for _, container in jobs:
        app.parse_args(container["args"][1:], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("case", MATRIX)
def test_the_uninstall_understands_its_flags(case: str) -> None:
    chart = rendered("uninstall.force=true", *MATRIX[case])
    leftovers = [
        parsed("uninstall", container["args"][1:]).leftovers
        for _, container in started(chart, "uninstall")
    ]
    cleaners = [
        parsed("node-clean", container["args"][1:]) for _, container in started(chart, "node-clean")
    ]
    assert sorted(leftovers) == [False] * len(cleaners) + [True]
    assert all(flags.force and flags.host_root == Path("/host") for flags in cleaners)


def test_claims_are_spared_unless_by_force() -> None:
    ((_, container),) = started(rendered(), "node-clean")
    assert not parsed("node-clean", container["args"][1:]).force


def test_the_uninstall_ends_the_agents_of_the_chart() -> None:
    flags = [
        parsed("uninstall", container["args"][1:])
        for _, container in started(rendered(), "uninstall")
    ]
    (nodes,) = [one for one in flags if not one.leftovers]
    assert rendered().has("DaemonSet", nodes.agent)
    assert nodes.agent == UninstallSettings(namespace="").agent


def test_nothing_else_is_started() -> None:
    chart = rendered()
    words = {
        container["args"][0]
        for _, pod in chart.pods()
        for container in containers(pod)
        if "args" in container
    }
    assert words == {*COMMANDS, "doctor", "uninstall", "node-clean"}
    assert all(
        "command" not in c or c["name"] == "done" for _, p in chart.pods() for c in containers(p)
    )


def test_the_environment_is_what_the_programs_read() -> None:
    chart = rendered()
    for command in COMMANDS:
        source = importlib.util.find_spec(f"casaba.cli.{command.replace('-', '_')}")
        assert source is not None
        assert source.origin is not None
        with open(source.origin, encoding="utf-8") as text:  # noqa: PTH123
            read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', text.read()))
        for _, container in started(chart, command):
            given = {variable["name"] for variable in container.get("env", ())}
            assert given <= read
            assert read - {"CERTIFICATE_DIR", "KUBECONFIG"} <= given


def test_ports_are_those_that_the_programs_open() -> None:
    chart = rendered()
    for command, flag in (
        ("node-agent", "metrics_address"),
        ("webhook", "metrics_address"),
        ("webhook", "address"),
        ("controller", "metrics_address"),
    ):
        for _, container in started(chart, command):
            if "ports" not in container:
                continue
            port = int(getattr(parsed(command, container["args"][1:]), flag).rpartition(":")[2])
            assert port in [told["containerPort"] for told in container["ports"]]


def test_the_webhook_answers_where_it_is_asked() -> None:
    module = importlib.util.find_spec("casaba.services.webhook.main")
    assert module is not None
    assert module.origin is not None
    with open(module.origin, encoding="utf-8") as text:  # noqa: PTH123
        answered = set(re.findall(r'"(/[a-z-]+)"', text.read()))
    configurations = rendered().of("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    asked = {
        webhook["clientConfig"]["service"]["path"]
        for configuration in configurations
        for webhook in configuration["webhooks"]
    }
    assert asked <= answered


@pytest.mark.parametrize("sets", KUBELETS)
def test_the_agents_folders_are_the_hosts(sets: tuple[str, ...]) -> None:
    """What the agent writes lies at the same path on the host, where the runtime looks for it."""
    ((pod, container),) = started(rendered(*sets), "node-agent")
    settings = node_agent.settings_from(parsed("node-agent", container["args"][1:]))
    paths = settings.paths
    hosts = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    wanted = (
        paths.plugin_dir,
        paths.registry_dir,
        paths.cdi_dir,
        paths.run_dir,
        paths.state_dir,
        settings.pod_resources_socket.parent,
    )
    for folder in map(str, wanted):
        assert hosts[mounts[folder]] == folder


def test_the_operators_driver_is_seen_where_it_is() -> None:
    ((_, container),) = started(rendered(), "node-agent")
    assert str(parsed("node-agent", container["args"][1:]).driver_root) == "/run/nvidia/driver"


def test_a_drivers_files_are_named_as_the_host_names_them() -> None:
    chart = rendered("drivers.nvidia.containerDriver=false")
    ((pod, container),) = started(chart, "node-agent")
    settings = node_agent.settings_from(parsed("node-agent", container["args"][1:]))
    hosts = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert hosts[mounts[str(settings.driver_root)]] == str(settings.host_driver_root) == "/"
    ((_, operators),) = started(rendered(), "node-agent")
    flags = parsed("node-agent", operators["args"][1:])
    assert node_agent.settings_from(flags).host_driver_root is None


@pytest.mark.parametrize("sets", KUBELETS)
def test_the_cleaner_sees_every_folder_of_the_agent(sets: tuple[str, ...]) -> None:
    ((_, agent),) = started(rendered(*sets), "node-agent")
    paths = node_agent.settings_from(parsed("node-agent", agent["args"][1:])).paths
    (cleaner,) = rendered(*sets).cleaners()
    spec = cleaner["spec"]["template"]["spec"]
    (clean,) = spec["initContainers"]
    assert node_clean.settings_from(parsed("node-clean", clean["args"][1:])).paths == paths
    hosts = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    above = set()
    for mount in clean["volumeMounts"]:
        host = hosts[mount["name"]]
        assert mount["mountPath"] == f"/host{host}"
        above.add(host)
    for folder in (paths.plugin_dir, paths.registry_dir, paths.run_dir, paths.state_dir):
        assert any(str(folder).startswith(f"{one}/") for one in above)
    assert str(paths.cdi_dir) in above


def doctors(*values: str) -> list[list[str]]:
    """The words that the doctors of `helm install` and `helm test` get."""
    jobs = [one["args"] for _, one in started(rendered(*values), "doctor")]
    found = [words for words in jobs if "--preuninstall" not in words]
    assert len(found) == 2
    return found


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ('{"gpu":"on"}', ["gpu=on"]),
        ('{"pool":"x"}', ["gpu=on", "pool=x"]),
        ('{"gpu":"yes"}', ["gpu=yes"]),
        ('{"gpu":null,"nvidia.com/gpu.present":"true"}', ["nvidia.com/gpu.present=true"]),
        ('{"gpu":null,"node-role.kubernetes.io/gpu":""}', ["node-role.kubernetes.io/gpu="]),
    ],
)
def test_agents_and_the_doctor_look_for_the_labels_that_agents_are_placed_by(
    selector: str, labels: list[str]
) -> None:
    chart = rendered(f"drivers.nvidia.daemonSet.nodeSelector={selector}")
    ((pod, agent),) = started(chart, "node-agent")
    settings = node_agent.settings_from(parsed("node-agent", agent["args"][1:]))
    assert dict(settings.node_labels) == pod["nodeSelector"]
    (cleaner,) = chart.cleaners()
    assert cleaner["spec"]["template"]["spec"]["nodeSelector"] == pod["nodeSelector"]
    for words in (*doctors(f"drivers.nvidia.daemonSet.nodeSelector={selector}"), agent["args"]):
        told = [w.removeprefix("--node-label=") for w in words if w.startswith("--node-label=")]
        assert told == labels


def test_the_doctor_is_told_every_resource_that_is_converted() -> None:
    """By the flags that the webhook is told them by."""
    renamed = [f'resource{kind}="example.com/{kind.lower()}"' for kind in KINDS]
    ((_, webhook),) = started(rendered(*renamed), "webhook")
    told = [word for word in webhook["args"] if word.startswith("--resource-")]
    assert len(told) == len(KINDS)
    for words in doctors(*renamed):
        assert set(told) <= {*words}


KINDS = ("Name", "Mem", "MemPercentage", "Cores", "Priority")


@pytest.mark.parametrize(
    ("values", "restricted"),
    [
        ((), False),
        (('networkPolicy.metricsFrom=[{"podSelector":{}}]',), True),
        (('networkPolicy.metricsFrom=[{"podSelector":{}}]', "networkPolicy.enabled=false"), False),
    ],
)
def test_the_doctor_knows_that_agents_may_be_hidden(
    values: tuple[str, ...], restricted: bool
) -> None:
    for words in doctors(*values):
        asks_agents = "--preinstall" not in words
        assert ("--metrics-restricted" in words) == (restricted and asks_agents)


def test_the_service_chooses_by_the_label_that_the_leader_gets() -> None:
    leadership = importlib.import_module("casaba.policy.leadership")
    selector = rendered().one("Service", "hami-dra-monitor")["spec"]["selector"]
    assert selector[leadership.LEADS] == leadership.TRUE


def test_refusals_of_an_uninstall_name_the_release() -> None:
    jobs = [c["args"] for _, c in started(rendered(), "doctor") if "--preuninstall" in c["args"]]
    jobs += [
        c["args"] for _, c in started(rendered(), "uninstall") if "--leftovers" not in c["args"]
    ]
    assert len(jobs) == 2
    for words in jobs:
        assert {"--release=casaba", "--revision=1", f"--namespace={NAMESPACE}"} <= {*words}
