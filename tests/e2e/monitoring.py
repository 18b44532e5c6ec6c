"""What the tests of metrics ask of Prometheus, the dashboards and the tenants."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from casaba.node.guard_library import native_dir
from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE
from tests.cluster.mounts import DRIVER_ROOT
from tests.cluster.prometheus import Prometheus
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    run_in,
)
from tests.hami_metrics import (
    Names,
)

NAMESPACE = "hami-system"
SCRAPED_S = 30.0
MIB = 1 << 20
FOREIGN_MIB = 11000
"""More than half of what is left of the card."""

PERIODS = {"__rate_interval": "1m", "__interval": "1m", "__range": "1h"}
"""Grafana's own variables."""


def impatient(rules: dict[str, Any]) -> dict[str, Any]:
    """The same alerts; they fire at once."""
    groups = [
        {**group, "rules": [{**rule, "for": "0s"} for rule in group["rules"]]}
        for group in rules["groups"]
    ]
    return {"groups": groups}


def classic_pod(
    name: str, *containers: str, node: str = "edge-1", **resources: str
) -> dict[str, Any]:
    """A pod of one node that waits."""
    limits = {f"nvidia.com/{kind}": amount for kind, amount in ({"gpu": "1"} | resources).items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": container,
                    "image": SAMPLE,
                    "command": ["sleep", "1000000"],
                    "resources": {"limits": limits},
                }
                for container in containers
            ],
        },
    }


@contextlib.contextmanager
def busy(bed: Bed, name: str) -> Iterator[None]:
    """A process in a pod that uses all the time it gets."""
    start = "busy --kernels=1ms --seconds=1000000 >/dev/null 2>&1 & echo $!"
    pid = run_in(bed, name, "sh", "-c", start).split()[-1]
    try:
        yield
    finally:
        run_in(bed, name, "kill", "-9", pid)


def told(server: Prometheus, expression: str, wanted: float | None) -> None:
    """Until an expression has one value; None: until it has none."""
    values = [] if wanted is None else [wanted]
    wait_until(
        f"{expression} is {wanted}",
        lambda: [value for _, value in server.query(expression)] == values,
        SCRAPED_S,
        explain=lambda: str(server.query(expression)),
    )


def scraped(bed: Bed, component: str, port: int) -> list[Names]:
    """Labels by name of each pod of a component, as it tells them."""
    selector = f"--selector=app.kubernetes.io/component={component}"
    listed = bed.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "-o", "name").stdout
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{{}}:{port}/proxy/metrics"
    texts = [
        bed.kubectl("get", "--raw", path.format(name.removeprefix("pod/"))).stdout
        for name in listed.split()
    ]
    return [
        {
            sample.name: frozenset(sample.labels)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        for text in texts
    ]


def of_hami(names: Names) -> Names:
    return {name: labels for name, labels in names.items() if not name.startswith(OURS)}


OURS = ("casaba_", "python_", "process_")


@contextlib.contextmanager
def quota(bed: Bed) -> Iterator[None]:
    """A quota on classic resources; it holds nobody back."""
    limited = {"hard": {"requests.nvidia.com/gpu": "8"}}
    object_ = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": limited}
    stdin = json.dumps(object_ | {"metadata": {"name": "cards"}})
    bed.kubectl("apply", "-f", "-", stdin=stdin)
    try:
        yield
    finally:
        bed.kubectl("delete", "resourcequota", "cards")


@contextlib.contextmanager
def foreign_process(bed: Bed) -> Iterator[None]:
    """A process of the first node itself, which no claim has let onto the card."""
    library = f"LD_LIBRARY_PATH={DRIVER_ROOT}/usr/lib/{platform.machine()}-linux-gnu"
    program = native_dir() / "samples/alloc_until_refused"
    with tempfile.TemporaryDirectory() as folder:
        silence = Path(folder) / "silence"
        os.mkfifo(silence)  # an input that never ends
        hold = f"{library} {program} --chunk-mib={FOREIGN_MIB} --hold 0<>{silence} >/dev/null 2>&1"
        said = bed.node("edge-1").run_in_namespaces(["/bin/sh", "-c", f"{hold} & echo $!"]).stdout
        try:
            yield
        finally:
            os.kill(int(said), signal.SIGKILL)


def differences(wanted: Names, found: list[Names]) -> str:
    """What is in one of them only."""
    return str([set(wanted.items()) ^ set(of_hami(names).items()) for names in found])


def is_full(server: Prometheus, page: dict[str, Any]) -> bool:
    return not without_data(server, page)


def without_data(server: Prometheus, page: dict[str, Any]) -> str:
    """Expressions of panels that have no sample, with all values of all variables chosen."""
    chosen = variables(server, page)
    asked = [
        (panel["title"], filled(target["expr"], chosen))
        for panel in page["panels"]
        for target in panel.get("targets", ())
    ]
    return "\n".join(f"{title}: {text}" for title, text in asked if not server.query(text))


def variables(server: Prometheus, page: dict[str, Any]) -> dict[str, str]:
    """Each variable of a dashboard as a pattern of all its values."""
    chosen = dict(PERIODS)
    for variable in page["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert found, variable
            asked = f"count by ({found[2]}) ({filled(found[1], chosen)})"
            values = [labels[found[2]] for labels, _ in server.query(asked) if labels]
            chosen[variable["name"]] = "|".join(map(re.escape, values)) or "nothing"
    return chosen


def filled(expression: str, chosen: dict[str, str]) -> str:
    """An expression with its variables filled in, as Grafana does."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]].replace("\\", r"\\"), expression)


def firing(server: Prometheus) -> list[dict[str, Any]]:
    return [one for one in server.alerts() if one["state"] == "firing"]


def has_series(server: Prometheus, selector: str) -> bool:
    return bool(server.query(selector))
