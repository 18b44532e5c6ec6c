"""One row of the table: a pod, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from casaba.policy.convert import ClusterFacts
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object
from tests.unit.policy.convert.pods import (
    TWO_A10,
    gpu,
)

TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
UUID, NO_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
GPU_POLICY, NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"

MODE, NUMA, WEIGHTS = (
    "nvidia.com/vgpu-mode",
    "nvidia.com/numa-bind",
    "hami.io/device-scoring-weights",
)

STRICT = ConversionSettings(policies_as_constraints=True)
HALF = gpu(1, mem=10240, cores=50)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pod and its fate."""

    name: str
    pod: Object
    claim: tuple[str, ...] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    """Requests by container, where they are not named as it."""
    refused: str = ""
    """A part of the sentence."""
    code: int = 422
    warnings: tuple[str, ...] = ()
    """A part of each warning, in their order."""
    facts: ClusterFacts = TWO_A10
    settings: ConversionSettings = field(default_factory=ConversionSettings)
    untouched: bool = False
    """Nothing of it is for us."""


def case(name: str, pod: Object, *claim: str, **fate: object) -> Case:
    return Case(name=name, pod=pod, claim=claim, **fate)  # type: ignore[arg-type]


def refused(name: str, pod: Object, sentence: str, **fate: object) -> Case:
    return Case(name=name, pod=pod, refused=sentence, **fate)  # type: ignore[arg-type]
