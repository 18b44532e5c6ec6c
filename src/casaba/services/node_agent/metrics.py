"""The agent's metrics: what it did, how it is, and what its node's cards do."""

import asyncio
import platform
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram

from casaba import __version__
from casaba.errors import CasabaError, HostError, InvalidInput, NoRoom, PrepareRefused
from casaba.kube import KubeError
from casaba.model.node_use import NodeUse
from casaba.policy.hami_build import build_family
from casaba.policy.usage_metrics import usage_families
from casaba.services.node_agent.status import AgentStatus
from casaba.services.node_agent.usage import UsageReader
from casaba.wire.exposition import Family

_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 45.0)
"""The last is the kubelet's patience."""

_REASONS: tuple[tuple[type[CasabaError], str], ...] = (
    (NoRoom, "no_room"),
    (PrepareRefused, "refused"),
    (KubeError, "api_server"),
    (HostError, "host"),
    (InvalidInput, "invalid"),
)
"""The first that fits."""

_OTHER = "other"


class AgentMetrics:
    """Everything that a scrape of the agent tells."""

    def __init__(
        self,
        reader: UsageReader,
        status: AgentStatus,
        *,
        node: str,
        device_count: Callable[[], int],
        legacy: bool,
    ) -> None:
        self.registry = CollectorRegistry()
        self._reader = reader
        self._status = status
        self._node = node
        self._device_count = device_count
        self._legacy = legacy
        self._seconds = {verb: self._histogram(verb) for verb in ("prepare", "unprepare")}
        self._errors = {verb: self._error_counter(verb) for verb in ("prepare", "unprepare")}
        self._publishes = Counter(
            "casaba_publishes",
            "Writes of this node's ResourceSlice.",
            ["outcome"],
            registry=self.registry,
        )
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """A series that begins with its first event hides that event from `rate` and `increase`."""
        for verb in ("prepare", "unprepare"):
            for outcome in ("ok", "error"):
                self._seconds[verb].labels(outcome)
            for reason in (*(reason for _, reason in _REASONS), _OTHER):
                self._errors[verb].labels(reason)
        self._publishes.labels("failed")

    def _histogram(self, verb: str) -> Histogram:
        return Histogram(
            f"casaba_{verb}_seconds",
            f"How long it took to {verb} a claim, waiting for room included.",
            ["outcome"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )

    def _error_counter(self, verb: str) -> Counter:
        return Counter(
            f"casaba_{verb}_errors",
            f"Claims that could not be {verb}d.",
            ["reason"],
            registry=self.registry,
        )

    def observe_call(self, verb: str, seconds: float, error: CasabaError | None) -> None:
        """One claim of a call of the kubelet's."""
        self._seconds[verb].labels("ok" if error is None else "error").observe(seconds)
        if error is not None:
            self._errors[verb].labels(_reason(error)).inc()

    def count_publish(self, outcome: str) -> None:
        """One write of a slice."""
        self._publishes.labels(outcome).inc()

    async def families(self) -> list[Family]:
        """What is read anew for each scrape."""
        use = await self._reader.read()
        return [*self._own(), *await asyncio.to_thread(self._of_use, use)]

    def _of_use(self, use: NodeUse) -> list[Family]:
        return usage_families(use, legacy=self._legacy)

    def _own(self) -> list[Family]:
        problems = [((self._node, one.reason), 1) for one in self._status.problems]
        return [
            build_family(
                __version__,
                python=platform.python_version(),
                system=platform.system(),
                machine=platform.machine(),
            ),
            self._gauge(
                "casaba_kubelet_registered",
                "1: the kubelet has registered the driver.",
                int(self._status.is_registered),
            ),
            self._gauge(
                "casaba_published_devices",
                "Cards that the node offers; 0 while it must not.",
                self._device_count(),
            ),
            Family(
                name="casaba_agent_problem",
                kind="gauge",
                help="1 for each problem that there is now.",
                labels=("node", "reason"),
                samples=problems,
            ),
        ]

    def _gauge(self, name: str, text: str, value: int) -> Family:
        samples = [((self._node,), value)]
        return Family(name=name, kind="gauge", help=text, labels=("node",), samples=samples)


def _reason(error: CasabaError) -> str:
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), _OTHER)
