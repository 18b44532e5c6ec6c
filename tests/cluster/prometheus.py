"""A real Prometheus in the cloud's namespace, for a while.

It scrapes what ServiceMonitors choose: their fields are put into its own configuration the way the
Prometheus Operator does (prometheus-operator.dev: design, ServiceMonitor).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import build, control_plane, network, processes
from tests.cluster.bed import Bed
from tests.cluster.errors import BedError
from tests.cluster.processes import Daemon
from tests.cluster.settings import CLOUD
from tests.cluster.waiting import wait_until

_PORT = 9090
_LISTEN = "127.0.0.1"
_START_TIMEOUT_S = 60.0
_REQUEST_TIMEOUT_S = 30.0
_REPOSITORY = Path(__file__).parents[2]

Labels = dict[str, str]
Samples = list[tuple[Labels, float]]


@dataclass(frozen=True)
class Prometheus:
    """Asks a running Prometheus."""

    bed: Bed
    port: int
    """On the machine's loopback."""

    def query(self, expression: str) -> Samples:
        """What an expression is now; without the samples that are not a number.

        Raises:
            BedError: Prometheus does not take the expression.
        """
        result = self._get("query", query=expression)["result"]
        told = [(dict(one["metric"]), float(one["value"][1])) for one in result]
        return [(labels, value) for labels, value in told if not math.isnan(value)]

    def value(self, expression: str) -> float:
        """The only sample of an expression.

        Raises:
            BedError: there is none, or another.
        """
        found = self.query(expression)
        if len(found) != 1:
            raise BedError(f"{expression}: one sample was expected, there are {found}")
        return found[0][1]

    def selectors(self, expression: str) -> list[str]:
        """The selectors of series that an expression is made of."""
        return list(_selectors(self._get("parse_query", query=expression)))

    def targets(self) -> dict[str, tuple[str, str]]:
        """Health and last error of each target, by its URL."""
        active = self._get("targets", state="active")["activeTargets"]
        return {one["scrapeUrl"]: (one["health"], one["lastError"]) for one in active}

    def alerts(self) -> list[dict[str, Any]]:
        """What is pending or firing."""
        return list(self._get("alerts")["alerts"])

    def rule_errors(self) -> dict[str, str]:
        """Last error of each rule that has one, by its name."""
        groups = self._get("rules")["groups"]
        rules = (rule for group in groups for rule in group["rules"])
        return {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}

    def answers(self) -> bool:
        """Whether it is ready for questions."""
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=_REQUEST_TIMEOUT_S):
                return True
        except OSError:
            return False

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _get(self, what: str, **words: str) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=_REQUEST_TIMEOUT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise BedError(f"Prometheus refuses {words}: {error.read().decode()}") from error


@contextmanager
def prometheus(
    bed: Bed,
    monitors: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Any],
    *,
    interval_s: int = 1,
) -> Iterator[Prometheus]:
    """Prometheus with what ServiceMonitors choose and the groups of a rule file.

    Raises:
        BedError: it does not start; the message carries the end of its log.
    """
    folder = bed.settings.cloud / "prometheus"
    shutil.rmtree(folder, ignore_errors=True)  # what another told is not of now
    folder.mkdir()
    (folder / "rules.json").write_text(json.dumps(rules))
    config = _config(bed, monitors, interval_s)
    (folder / "prometheus.json").write_text(json.dumps(config))
    with control_plane.open_forward_port() as listener:
        running = Prometheus(bed, listener.getsockname()[1])
        daemons = (_server(bed, folder), _forward(bed, folder, listener.fileno()))
        os.set_inheritable(listener.fileno(), True)
        try:
            for daemon in daemons:
                processes.start(daemon)
            _wait_for(running, daemons)
            yield running
        finally:
            for daemon in daemons:
                processes.stop(daemon)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool; its exit code and what it says come back."""
    command = [build.build(["prometheus"])["promtool"], *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def scrape_config(
    monitor: Mapping[str, Any], kubeconfig: Path, interval_s: int
) -> list[dict[str, Any]]:
    """One job for each endpoint of a ServiceMonitor."""
    spec, named = monitor["spec"], monitor["metadata"]
    return [
        {
            "job_name": f"serviceMonitor/{named['namespace']}/{named['name']}/{number}",
            "honor_labels": endpoint.get("honorLabels", False),
            "scrape_interval": f"{interval_s}s",
            "scrape_timeout": f"{interval_s}s",
            "kubernetes_sd_configs": [
                {
                    "role": "endpointslice",
                    "kubeconfig_file": str(kubeconfig),
                    "namespaces": {"names": spec["namespaceSelector"]["matchNames"]},
                }
            ],
            "relabel_configs": [
                *_chosen(spec["selector"]["matchLabels"], endpoint["port"]),
                *_told_of_target(endpoint["port"]),
                *(_relabeling(one) for one in endpoint.get("relabelings", ())),
            ],
        }
        for number, endpoint in enumerate(spec["endpoints"])
    ]


def _chosen(labels: Mapping[str, str], port: str) -> Iterator[dict[str, Any]]:
    for label, value in labels.items():
        mangled = "".join(letter if letter.isalnum() else "_" for letter in label)
        yield _keep(f"__meta_kubernetes_service_label_{mangled}", value)
    yield _keep("__meta_kubernetes_endpointslice_port_name", port)


def _keep(label: str, value: str) -> dict[str, Any]:
    return {"action": "keep", "source_labels": [label], "regex": value.replace(".", r"\.")}


def _told_of_target(port: str) -> Iterator[dict[str, Any]]:
    for target, source in (
        ("namespace", "namespace"),
        ("service", "service_name"),
        ("pod", "pod_name"),
        ("container", "pod_container_name"),
        ("job", "service_name"),
    ):
        yield {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}
    yield {"target_label": "endpoint", "replacement": port}


def _relabeling(told: Mapping[str, Any]) -> dict[str, Any]:
    names = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    return {names.get(name, name): value for name, value in told.items()}


def _config(bed: Bed, monitors: Sequence[Mapping[str, Any]], interval_s: int) -> dict[str, object]:
    # An identity that may list and watch everything.
    kubeconfig = bed.settings.cloud / "kube-controller-manager"
    jobs = [job for one in monitors for job in scrape_config(one, kubeconfig, interval_s)]
    return {
        "global": {"evaluation_interval": f"{interval_s}s"},
        "rule_files": ["rules.json"],
        "scrape_configs": jobs,
    }


def _wait_for(running: Prometheus, daemons: Sequence[Daemon]) -> None:
    def still_worth_it() -> None:
        for daemon in daemons:
            processes.require_running(daemon)

    wait_until("Prometheus is ready", running.answers, _START_TIMEOUT_S, still_worth_it)


def _server(bed: Bed, folder: Path) -> Daemon:
    command = [
        build.build(["prometheus"])["prometheus"],
        f"--config.file={folder / 'prometheus.json'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={_LISTEN}:{_PORT}",
    ]
    return Daemon("prometheus", [*_entering(bed), *command], folder, bed.settings.cgroup(CLOUD))


def _forward(bed: Bed, folder: Path, descriptor: int) -> Daemon:
    # -P, and the folder in PYTHONPATH: the module is found whatever the working folder is.
    command = [sys.executable, "-P", "-m", "tests.cluster.forward"]
    return Daemon(
        "forward",
        [*_entering(bed), *command, str(descriptor), _LISTEN, str(_PORT)],
        folder,
        bed.settings.cgroup(CLOUD),
        {"PYTHONPATH": str(_REPOSITORY)},
        [descriptor],
    )


def _entering(bed: Bed) -> list[str]:
    return network.entering(bed.settings.network_namespace(CLOUD))


def _selectors(node: Any) -> Iterator[str]:
    """The selectors in a parsed expression, written out again."""
    if isinstance(node, list):
        for one in node:
            yield from _selectors(one)
    elif isinstance(node, dict):
        if node.get("type") in ("vectorSelector", "matrixSelector"):
            matchers = (
                f"{one['name']}{one['type']}{json.dumps(one['value'])}" for one in node["matchers"]
            )
            yield f"{{{', '.join(matchers)}}}"
        else:
            for one in node.values():
                yield from _selectors(one)
