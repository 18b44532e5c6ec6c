"""`casaba webhook` and `casaba controller` as processes beside the bed's API server.

The API server calls the webhook as the chart's configurations say, but at an address instead of a
Service; flags and rights are those that the chart gives to its pods.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casaba.settings.conversion import ConversionSettings
from tests.cluster import network, processes
from tests.cluster.bed import Bed
from tests.cluster.control_plane import API_URL
from tests.cluster.processes import Daemon
from tests.cluster.settings import CLOUD
from tests.cluster.waiting import wait_until
from tests.component.webhook.certificates import LOOPBACK, Authority, SecretVolume
from tests.e2e.charts import rendered
from tests.e2e.plain_api import PlainApi, Reply

NAMESPACE = "casaba-webhook-test"
"""Where the chart would be."""

WEBHOOK_PORT = 9443
_METRICS_PORTS = {"webhook": 9444, "controller": 9445}

_QUICK = ("--drain=0", "--certificate-check=0.2")

READY_TIMEOUT_S = 60.0
GONE_TIMEOUT_S = 60.0

_DEPLOYMENT = "webhook/deployment.yaml"
_CALLS = ("webhook/mutating.yaml", "webhook/validating.yaml", "admission/claims.yaml")

Object = dict[str, Any]


def chart_values(settings: ConversionSettings) -> Object:
    """The chart's values for these settings."""
    return {
        "resourceName": settings.count_resource,
        "resourceMem": settings.memory_resource,
        "resourceMemPercentage": settings.percentage_resource,
        "resourceCores": settings.cores_resource,
        "resourcePriority": settings.priority_resource,
        "conversion": {
            "defaultGPUNum": settings.default_count,
            "defaultMemory": settings.default_memory_mib,
            "defaultCores": settings.default_cores_percent,
            "memoryFactor": settings.memory_factor,
            "gpuCorePolicy": settings.core_policy,
            "refuseOversized": settings.refuse_oversized,
            "policiesAsConstraints": settings.policies_as_constraints,
        },
    }


@dataclass
class Program:
    """A process of casaba's that lives with the API server."""

    daemon: Daemon
    _read: int = 0

    def start(self) -> None:
        """Begin; what it logged before does not count any more."""
        self._read = len(self._log())
        processes.start(self.daemon)

    def stop(self) -> None:
        """End it in order."""
        processes.stop(self.daemon)

    def events(self, name: str, **fields: Any) -> list[Object]:
        """Lines of this name, and with these fields, that it logged since its start."""
        lines = (_line(text) for text in self._log()[self._read :].splitlines())
        wanted = {"event": name, **fields}.items()
        return [line for line in lines if wanted <= line.items()]

    def wait_for(self, name: str, count: int = 1, **fields: Any) -> None:
        """Until it has logged this so often."""
        wait_until(
            f"{self.daemon.name} says {name}",
            lambda: len(self.events(name, **fields)) >= count,
            READY_TIMEOUT_S,
            still_worth_it=lambda: processes.require_running(self.daemon),
            explain=lambda: processes.log_tail(self.daemon.log),
        )

    def _log(self) -> str:
        log = self.daemon.log
        return log.read_text(errors="replace") if log.exists() else ""


def _line(text: str) -> Object:
    """A line that is half written yet is none."""
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        return found if isinstance(found, dict) else {}
    return {}


@dataclass
class WebhookSite:
    """The bed with the webhook's accounts and a namespace for pods."""

    bed: Bed
    api: PlainApi
    pods_namespace: str
    folder: Path
    authority: Authority = field(default_factory=Authority)
    settings: ConversionSettings | None = None
    """What the webhook runs with."""
    _webhook: Program | None = None
    _calls: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self.volume = SecretVolume(self.folder / "tls")
        """What the webhook serves with."""

    @property
    def webhook(self) -> Program:
        """The one that runs."""
        assert self._webhook is not None
        return self._webhook

    def run_webhook(self, settings: ConversionSettings) -> None:
        """Let it run with these settings and no others, and be asked."""
        if settings == self.settings:
            return
        objects = rendered(NAMESPACE, _DEPLOYMENT, *_CALLS, values=chart_values(settings))
        (deployment,) = (one for one in objects if one["kind"] == "Deployment")
        objects.remove(deployment)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        if self._webhook is not None:
            self._webhook.stop()
        self._webhook = self._program("webhook", container["args"], self._tls())
        self._webhook.start()
        self._webhook.wait_for("webhook.ready")
        self._ask_it(objects)
        self.settings = settings

    def end_webhook(self) -> None:
        """Stop it, and let nobody ask it."""
        if self._calls:
            self.bed.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=self._calls)
        if self._webhook is not None:
            self._webhook.stop()
        self._webhook, self._calls, self.settings = None, "", None

    @contextmanager
    def controller(self, *flags: str) -> Iterator[Program]:
        """The controller, which leads, with more flags."""
        arguments = ["controller", f"--namespace={NAMESPACE}", "--no-certificates", *flags]
        program = self._program("controller", arguments, ())
        program.start()
        try:
            yield program
        finally:
            program.stop()

    def pods(self, name: str = "") -> str:
        """The path of the pods, or of one."""
        return f"/api/v1/namespaces/{self.pods_namespace}/pods" + (f"/{name}" if name else "")

    def templates(self, name: str = "") -> str:
        """The path of the templates, or of one."""
        root = f"/apis/resource.k8s.io/v1/namespaces/{self.pods_namespace}"
        return f"{root}/resourceclaimtemplates" + (f"/{name}" if name else "")

    def create_pod(self, pod: Any, *, dry_run: bool = False) -> Reply:
        """What the API server makes of it."""
        return self.api.call("POST", self.pods() + ("?dryRun=All" if dry_run else ""), pod)

    def template_names(self) -> set[str]:
        """All that are there."""
        found = self.api.call("GET", self.templates()).body
        return {one["metadata"]["name"] for one in found["items"]}

    def wait_until_asked(self, pod: Object, is_as_wanted: Callable[[Reply], bool]) -> None:
        """Until a pod, tried by dry-run, comes out as it should: configurations and what the
        webhook follows take a moment to arrive."""
        last: list[Reply] = []

        def asked() -> bool:
            last[:] = [self.create_pod(pod, dry_run=True)]
            return is_as_wanted(last[0])

        wait_until(
            "the webhook answers as it should", asked, READY_TIMEOUT_S, explain=lambda: str(last)
        )

    def _tls(self) -> Sequence[str]:
        if not self.volume.folder.exists():
            self.volume.put(self.authority.pair(), self.authority.pem)
        return (f"--certificate-dir={self.volume.folder}", f"--address={LOOPBACK}:{WEBHOOK_PORT}")

    def _program(self, name: str, arguments: Sequence[str], more: Sequence[str]) -> Program:
        """The last of a flag's values counts, so ours come after the chart's."""
        settings = self.bed.settings
        casaba = str(Path(sys.executable).parent / "casaba")
        own = [
            f"--kubeconfig={self.folder / name}",
            f"--metrics-address={LOOPBACK}:{_METRICS_PORTS[name]}",
            *(_QUICK if name == "webhook" else []),
        ]
        entering = network.entering(settings.network_namespace(CLOUD))
        command = [*entering, casaba, *arguments, *more, *own]
        return Program(Daemon(f"casaba-{name}", command, settings.cloud, settings.cgroup(CLOUD)))

    def _ask_it(self, objects: Sequence[Object]) -> None:
        """As configurations and policies say, once they are read."""
        for one in objects:
            for webhook in one.get("webhooks", ()):
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {
                    "url": f"https://{LOOPBACK}:{WEBHOOK_PORT}{path}",
                    "caBundle": base64.b64encode(self.authority.pem).decode(),
                }
        calls = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        if calls != self._calls:
            self._calls = calls
            self.bed.kubectl("apply", "-f", "-", stdin=calls)


@contextmanager
def webhook_site(bed: Bed, folder: Path, pods_namespace: str) -> Iterator[WebhookSite]:
    """Everything but a running webhook; at the end nothing of it is left."""
    names, rights = (NAMESPACE, pods_namespace), _rights()
    items = [*map(_namespace, names), *(one for part in rights.values() for one in part)]
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    site = WebhookSite(bed, PlainApi(bed), pods_namespace, folder)
    try:
        bed.kubectl("apply", "-f", "-", stdin=objects)
        for program, part in rights.items():
            _write_kubeconfig(bed, folder / program, _account(part))
        yield site
    finally:
        site.end_webhook()
        bed.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", stdin=objects)
        wait_until(
            f"{names} are gone",
            lambda: all(site.api.call("GET", _path(name)).status == 404 for name in names),
            GONE_TIMEOUT_S,
        )
        site.api.close()


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}"


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _rights() -> dict[str, list[Object]]:
    """Of each program, as the chart gives them."""
    files = {"webhook": "webhook/rbac.yaml", "controller": "controller/rbac.yaml"}
    return {program: rendered(NAMESPACE, file) for program, file in files.items()}


def _account(objects: Sequence[Object]) -> str:
    (name,) = (one["metadata"]["name"] for one in objects if one["kind"] == "ServiceAccount")
    return str(name)


def _write_kubeconfig(bed: Bed, file: Path, account: str) -> None:
    """The account's way to the API server, from inside the cloud's network."""
    token = bed.kubectl("create", "token", account, f"--namespace={NAMESPACE}").stdout
    content = json.loads(bed.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = API_URL
    content["users"][0]["user"] = {"token": token.strip()}
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))
