"""The chart as the real helm renders it, as objects that a test can look at."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.helm import helm

Object = dict[str, Any]

CHART = Path(__file__).parents[2] / "charts" / "casaba"
NAMESPACE = "hami-system"
CERT_MANAGER = "--api-versions=cert-manager.io/v1"
KUBERNETES = "--kube-version=1.36.0"
POD_OWNERS = ("Deployment", "DaemonSet", "Job")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Rendered:
    """Everything that one set of values makes."""

    objects: tuple[Object, ...]

    def one(self, kind: str, name: str) -> Object:
        """The object of a kind and name; there must be one."""
        (found,) = (o for o in self.objects if (o["kind"], o["metadata"]["name"]) == (kind, name))
        return found

    def has(self, kind: str, name: str) -> bool:
        """Whether there is such an object."""
        return any((o["kind"], o["metadata"]["name"]) == (kind, name) for o in self.objects)

    def of(self, *kinds: str) -> list[Object]:
        """All objects of some kinds."""
        return [o for o in self.objects if o["kind"] in kinds]

    def pods(self) -> Iterator[tuple[Object, Object]]:
        """Each object that makes pods, with the spec of its pods; the cleaner's too."""
        for owner in [*self.of(*POD_OWNERS), *self.cleaners()]:
            yield owner, owner["spec"]["template"]["spec"]

    def cleaners(self) -> list[Object]:
        """The DaemonSet that the uninstall job makes, read from its ConfigMap."""
        return [
            yaml.safe_load(config["data"]["cleaner.json"])
            for config in self.of("ConfigMap")
            if "cleaner.json" in config["data"]
        ]


def rendered(*sets: str, options: Iterable[str] = ()) -> Rendered:
    """The chart with `--set-json` values such as `webhook.replicas=1`; it must render."""
    return _rendered(tuple(sets), tuple(options))


def refused(*sets: str, options: Iterable[str] = ()) -> str:
    """What helm says about values that it must not take."""
    done = _template(tuple(sets), tuple(options))
    assert done.returncode != 0, f"helm took {sets}"
    return done.stderr


def containers(pod: Object) -> list[Object]:
    """All containers of a pod's spec."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


@functools.lru_cache(maxsize=256)
def _rendered(sets: tuple[str, ...], options: tuple[str, ...]) -> Rendered:
    done = _template(sets, options)
    assert done.returncode == 0, done.stderr
    return Rendered(tuple(o for o in yaml.load_all(done.stdout, yaml.CSafeLoader) if o is not None))


def _template(sets: tuple[str, ...], options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = [str(helm()), "template", "casaba", str(CHART), "-n", NAMESPACE, KUBERNETES, *options]
    for one in sets:
        command += ["--set-json", one]
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
