"""Pods and what becomes of them, as a table: for the pure conversion, and for a real API server.

`claim` has a line for each request (`name: memory/cores`, `where N` counts its selectors), for
each constraint and each configuration. An empty claim without a refusal: the pod gets none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from casaba.policy.convert import ClusterFacts
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object
from tests.unit.policy.convert.pods import (
    A10S,
    A100S,
    NOTHING,
    PLAIN,
    THREE_SIZES,
    TWO_A10,
    cards,
    facts,
    gpu,
    pod,
    sidecar,
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


AMOUNTS = (
    case("the scenario's pod", pod(main=HALF), "main: 10Gi/50"),
    case("numbers instead of texts", pod(main=gpu(1, mem=10240, cores=50)), "main: 10Gi/50"),
    case("texts", pod(main=gpu("1", mem="10240", cores="50")), "main: 10Gi/50"),
    case("exponents", pod(main=gpu("1e0", mem="1e4", cores="5e1")), "main: 10000Mi/50"),
    case("exponents as numbers", pod(main=gpu(1, mem=1e4, cores=5e1)), "main: 10000Mi/50"),
    case("thousands", pod(main=gpu(1, mem="10k")), "main: 10000Mi/0"),
    case("binary thousands", pod(main=gpu(1, mem="10Ki")), "main: 10Gi/0"),
    case("milli that come out whole", pod(main=gpu(1, mem="1024000m")), "main: 1Gi/0"),
    case("blanks around", pod(main=gpu(" 1 ", mem=" 1024 ")), "main: 1Gi/0"),
    case("one MiB", pod(main=gpu(1, mem=1)), "main: 1Mi/0"),
    case("memory only", pod(main=gpu(mem=4096)), "main: 4Gi/0"),
    case("memory only, as a request", pod(main={**PLAIN, "resources": {"requests": {
        "nvidia.com/gpu": 1, "nvidia.com/gpumem": 4096}}}), "main: 4Gi/0"),
    case("limits and equal requests", pod(main={**PLAIN, "resources": {
        "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10k"},
        "requests": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "10000"}}}), "main: 10000Mi/0"),
    case("other resources stay", pod(main={**PLAIN, "resources": {
        "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024", "cpu": "2"},
        "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}}), "main: 1Gi/0"),
    case("count only is the whole card", pod(main=gpu(1)), "main: all/all"),
    case("cores 0 said so", pod(main=gpu(1, mem=2048, cores=0)), "main: 2Gi/0"),
    case("cores 100", pod(main=gpu(1, mem=2048, cores=100)), "main: 2Gi/100"),
    case("all cores and no memory", pod(main=gpu(1, cores=100)), "main: all/all"),
    case("cores only", pod(main=gpu(cores=30)), "main: all/30",
         warnings=("gets all memory of the card",)),
    case("count and cores", pod(main=gpu(1, cores=30)), "main: all/30",
         warnings=("gets all memory of the card",)),
    case("cores 0 and no memory", pod(main=gpu(1, cores=0)), "main: all/0",
         warnings=("gets all memory of the card",)),
    case("memory 0 is as good as unset", pod(main=gpu(1, mem=0)), "main: all/all"),
    case("percentage 0 is as good as unset", pod(main=gpu(1, percent=0, mem=1024)), "main: 1Gi/0"),
    case("null is 0", pod(main={**PLAIN, "resources": {"limits": {
        "nvidia.com/gpu": 1, "nvidia.com/gpumem": None}}}), "main: all/all"),
    case("100 percent is the whole card", pod(main=gpu(1, percent=100)), "main: all/all"),
    case("100 percent without a count", pod(main=gpu(percent=100)), "main: all/all"),
    case("100 percent and cores", pod(main=gpu(1, percent=100, cores=20)), "main: all/20"),
    refused("count 0", pod(main=gpu(0)), "container main: nvidia.com/gpu: 0 cards are no cards"),
    refused("count -1", pod(main=gpu(-1)), "nvidia.com/gpu: -1 is negative"),
    refused("count 0 with memory", pod(main=gpu("0", mem=1024)), "0 cards are no cards"),
    refused("half a card as a count", pod(main=gpu("0.5")), "nvidia.com/gpu: 0.5 is a fraction"),
    refused("milli cards", pod(main=gpu("500m")), "500m is a fraction"),
    refused("33 cards", pod(main=gpu(33)), "33 is more than the 32 cards"),
    refused("a text that is no number", pod(main=gpu("one")), '"one" is not a quantity', code=400),
    refused("an empty text", pod(main=gpu("")), '"" is not a quantity', code=400),
    refused("true", pod(main=gpu(True)), "true is not a quantity", code=400),
    refused("a list", pod(main=gpu([1])), "a list is not a quantity", code=400),
    refused("an object", pod(main=gpu(1, mem={"mib": 1})), "an object is not a", code=400),
    refused("a number without end", pod(main=gpu(10**300)), "too many digits", code=400),
    refused("memory in bytes", pod(main=gpu(1, mem="10Gi")),
            "10Gi is too much, since it counts MiB, not bytes; write 10240 for 10Gi bytes"),
    refused("memory in Mi", pod(main=gpu(1, mem="512Mi")), "write 512 for 512Mi bytes"),
    refused("memory in M", pod(main=gpu(1, mem="500M")), "write 477 for 500M bytes"),
    refused("memory in plain bytes", pod(main=gpu(1, mem=10737418240)),
            "10737418240 is too much, since it counts MiB, not bytes; write 10240"),
    refused("negative memory", pod(main=gpu(1, mem=-5)), "nvidia.com/gpumem: -5 is negative"),
    refused("a fraction of a MiB", pod(main=gpu(1, mem="0.5")), "gpumem: 0.5 is a fraction"),
    refused("cores 101", pod(main=gpu(1, mem=1024, cores=101)), "101 is more than 100 percent"),
    refused("cores -1", pod(main=gpu(1, cores=-1)), "nvidia.com/gpucores: -1 is negative"),
    refused("memory and percentage", pod(main=gpu(1, mem=1024, percent=50)),
            "nvidia.com/gpumem: 1024 and nvidia.com/gpumem-percentage: 50 stand together"),
    refused("percentage 101", pod(main=gpu(1, percent=101)), "101 is more than 100 percent"),
    refused("percentage -1", pod(main=gpu(1, percent=-1)), "-1 is negative"),
    refused("percentage 0.5", pod(main=gpu(1, percent="0.5")), "0.5 is a fraction"),
    refused("limit and request differ", pod(main={**PLAIN, "resources": {
        "limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}}),
        "the limit is 1, the request 2; write the limit only"),
)  # fmt: skip

DEFAULTS = (
    case("default count", pod(main=gpu(mem=1024)), "main-0: 1Gi/0", "main-1: 1Gi/0",
         "different: main-0 main-1", uses={"main": "main-0 main-1"},
         settings=ConversionSettings(default_count=2)),
    refused("no default count", pod(main=gpu(mem=1024)), "0 cards are no cards; ask for 1 or more",
            settings=ConversionSettings(default_count=0)),
    refused("a default of too many cards", pod(main=gpu(mem=1024)), "33 is more than the 32 cards",
            settings=ConversionSettings(default_count=33)),
    case("default memory", pod(main=gpu(1)), "main: 4000Mi/0",
         settings=ConversionSettings(default_memory_mib=4000)),
    case("default memory and cores asked", pod(main=gpu(1, cores=25)), "main: 4000Mi/25",
         settings=ConversionSettings(default_memory_mib=4000)),
    case("default cores", pod(main=gpu(1, mem=1024)), "main: 1Gi/10",
         settings=ConversionSettings(default_cores_percent=10)),
    case("default cores are not for whole cards", pod(main=gpu(1)), "main: all/all",
         settings=ConversionSettings(default_cores_percent=10)),
    case("memory factor", pod(main=gpu(1, mem=10)), "main: 10Gi/0",
         settings=ConversionSettings(memory_factor=1024)),
    refused("bytes with a memory factor", pod(main=gpu(1, mem="10Gi")),
            "it counts units of 1024 MiB, not bytes; write 10 for 10Gi bytes",
            settings=ConversionSettings(memory_factor=1024)),
    case("core policy of the chart", pod(main=HALF), "main: 10Gi/50", "corePolicy force: main",
         settings=ConversionSettings(core_policy="force")),
    case("other resource names", pod(main={**PLAIN, "resources": {"limits": {
        "example.com/vgpu": 1, "example.com/vmem": 512}}}), "main: 512Mi/0",
        settings=ConversionSettings(count_resource="example.com/vgpu",
                                    memory_resource="example.com/vmem")),
    case("classic names are not ours then", pod(main=HALF), untouched=True,
         settings=ConversionSettings(
             count_resource="e.com/a", memory_resource="e.com/b", percentage_resource="e.com/c",
             cores_resource="e.com/d", priority_resource="e.com/e")),
)  # fmt: skip

PARAMETERS = (
    case("high priority", pod(main=gpu(1, mem=1024, priority=0)), "main: 1Gi/0",
         "priority 0: main"),
    case("low priority", pod(main=gpu(1, mem=1024, priority="1")), "main: 1Gi/0",
         "priority 1: main"),
    refused("priority 2", pod(main=gpu(1, priority=2)), "2 is no priority; write 0 for high"),
    case("priority alone asks for nothing", pod(main=gpu(priority=1)),
         warnings=("nvidia.com/priority asks for no card and is taken away",)),
    case("priority alone beside a GPU container", pod(main=HALF, other=gpu(priority=1)),
         "main: 10Gi/50", warnings=("container other: nvidia.com/priority asks for no card",)),
    case("many warnings", pod(**{f"c{n}": gpu(priority=1) for n in range(40)}),  # type: ignore[arg-type]
         warnings=(*("asks for no card",) * 15, "and 25 more warnings")),
    case("core policy force", pod(main=gpu(1, mem=1024, cores=5,
         env={"GPU_CORE_UTILIZATION_POLICY": "force"})), "main: 1Gi/5", "corePolicy force: main"),
    case("core policy disable", pod(main=gpu(1, mem=1024, cores=5,
         env={"GPU_CORE_UTILIZATION_POLICY": "DISABLE"})), "main: 1Gi/5",
         "corePolicy disable: main"),
    case("core policy default over the chart's", pod(main=gpu(1, mem=1024,
         env={"GPU_CORE_UTILIZATION_POLICY": "default"})), "main: 1Gi/0",
         "corePolicy default: main", settings=ConversionSettings(core_policy="force")),
    case("an empty core policy is none", pod(main=gpu(1, mem=1024,
         env={"GPU_CORE_UTILIZATION_POLICY": ""})), "main: 1Gi/0"),
    refused("core policy unknown", pod(main=gpu(1, env={"GPU_CORE_UTILIZATION_POLICY": "off"})),
            '"off" is unknown; use one of default, force, disable'),
    case("core policy of a container without a card", pod(main=HALF, other={
         **PLAIN, "env": [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "nonsense"}]}),
         "main: 10Gi/50"),
    case("core policy that can't be read", pod(main={**HALF, "env": [
         {"name": "GPU_CORE_UTILIZATION_POLICY", "valueFrom": {"fieldRef": {
             "fieldPath": "metadata.labels['policy']"}}}]}), "main: 10Gi/50",
         warnings=("comes from valueFrom and can't be read here; default is used",)),
    case("the last of two variables counts", pod(main={**HALF, "env": [
         {"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"},
         {"name": "GPU_CORE_UTILIZATION_POLICY", "value": "disable"}]}), "main: 10Gi/50",
         "corePolicy disable: main"),
    case("limits can't be switched off", pod(main=gpu(1, mem=1024, env={
         "CUDA_DISABLE_CONTROL": "true"})), "main: 1Gi/0",
         warnings=("CUDA_DISABLE_CONTROL has no effect: limits always hold",)),
    case("parameters of two containers", pod(a=gpu(1, mem=1024, priority=1),
         b=gpu(1, mem=1024, priority=1), c=gpu(1, mem=1024, priority=0)),
         "a: 1Gi/0", "b: 1Gi/0", "c: 1Gi/0", "priority 1: a b", "priority 0: c"),
)  # fmt: skip

COUNTS = (
    case("two cards are different", pod(main=gpu(2, mem=1024)), "main-0: 1Gi/0", "main-1: 1Gi/0",
         "different: main-0 main-1", uses={"main": "main-0 main-1"}),
    case("two whole cards", pod(main=gpu(2)), "main-0: all/all", "main-1: all/all",
         "different: main-0 main-1", uses={"main": "main-0 main-1"}),
    case("more cards than a node has", pod(main=gpu(3, mem=1024)), "main-0: 1Gi/0",
         "main-1: 1Gi/0", "main-2: 1Gi/0", "different: main-0 main-1 main-2",
         uses={"main": "main-0 main-1 main-2"},
         warnings=("container main: 3 cards, but the most that a node has of them is 2",)),
    case("more large cards than a node has", pod(main=gpu(2, mem=40000)), "main-0: 40000Mi/0",
         "main-1: 40000Mi/0", "different: main-0 main-1", uses={"main": "main-0 main-1"},
         facts=facts(*A10S, *A100S), warnings=("the most that a node has of them is 1",)),
    case("two containers", pod(a=gpu(1, mem=1024), b=gpu(1, mem=2048, cores=10)), "a: 1Gi/0",
         "b: 2Gi/10"),
    case("two containers with two cards each", pod(a=gpu(2, mem=1024), b=gpu(2, mem=2048)),
         "a-0: 1Gi/0", "a-1: 1Gi/0", "b-0: 2Gi/0", "b-1: 2Gi/0", "different: a-0 a-1",
         "different: b-0 b-1", uses={"a": "a-0 a-1", "b": "b-0 b-1"}),
    case("a container is named as a request would be", pod(a=gpu(2, mem=1024),
         a_0=gpu(1, mem=2048)), "a-0-2: 1Gi/0", "a-1: 1Gi/0", "a-0: 2Gi/0",
         "different: a-0-2 a-1", uses={"a": "a-0-2 a-1", "a-0": "a-0"}),
    case("a long name", pod(spec={"containers": [{"name": "a" * 63, **gpu(2, mem=1024)}]}),
         f"{'a' * 61}-0: 1Gi/0", f"{'a' * 61}-1: 1Gi/0", f"different: {'a' * 61}-0 {'a' * 61}-1",
         uses={"a" * 63: f"{'a' * 61}-0 {'a' * 61}-1"}),
    case("32 cards", pod(main=gpu(32, mem=1)), *(f"main-{n}: 1Mi/0" for n in range(32)),
         f"different: {' '.join(f'main-{n}' for n in range(32))}",
         uses={"main": " ".join(f"main-{n}" for n in range(32))},
         warnings=("32 cards, but the most that a node has of them is 2",)),
    refused("33 cards in two containers", pod(a=gpu(32), b=gpu(1)),
            "container b: the pod asks for more than the 32 cards that one claim can have"),
    case("beside a container without a card", pod(main=HALF, log=PLAIN), "main: 10Gi/50"),
)  # fmt: skip

INIT = (
    case("an init container alone", pod(init={"warm": gpu(1, mem=1024)}), "warm: 1Gi/0"),
    case("init reuses what is large enough", pod(init={"warm": gpu(1, mem=1024)}, main=HALF),
         "main: 10Gi/50", uses={"warm": "main"}),
    case("init of the same size", pod(init={"warm": HALF}, main=HALF), "main: 10Gi/50",
         uses={"warm": "main"}),
    case("a larger init makes the request larger", pod(init={"warm": gpu(1, mem=12288)},
         main=gpu(1, mem=4096)), "main: 12Gi/0", uses={"warm": "main"},
         warnings=("container main may use 12288 MiB, because init container warm",)),
    case("the larger of each amount", pod(init={"warm": gpu(1, mem=12288, cores=10)},
         main=gpu(1, mem=4096, cores=50)), "main: 12Gi/50", uses={"warm": "main"},
         warnings=("container main may use 12288 MiB and 50 cores",)),
    case("init wants the whole card", pod(init={"warm": gpu(1)}, main=gpu(1, mem=4096)),
         "main: all/all where 1", uses={"warm": "main"},
         warnings=("container main may use 4096 MiB or 100 % of memory and 100 cores",)),
    case("init in a whole card", pod(init={"warm": gpu(1, mem=4096)}, main=gpu(1)),
         "main: all/all where 1", uses={"warm": "main"}),
    case("init takes the container that fits", pod(init={"warm": gpu(1, mem=4096)},
         a=gpu(1, mem=1024), b=gpu(1, mem=8192)), "a: 1Gi/0", "b: 8Gi/0", uses={"warm": "b"}),
    case("init makes the largest larger", pod(init={"warm": gpu(1, mem=9216)},
         a=gpu(1, mem=1024), b=gpu(1, mem=8192)), "a: 1Gi/0", "b: 9Gi/0", uses={"warm": "b"},
         warnings=("container b may use 9216 MiB",)),
    case("two init containers share", pod(init={"one": gpu(1, mem=2048), "two": gpu(1, mem=1024)},
         main=HALF), "main: 10Gi/50", uses={"one": "main", "two": "main"}),
    case("two init containers alone", pod(init={"one": gpu(1, mem=1024), "two": gpu(1, mem=2048)}),
         "one: 2Gi/0", uses={"two": "one"}),
    case("init with fewer cards", pod(init={"warm": gpu(1, mem=1024)}, main=gpu(2, mem=1024)),
         "main-0: 1Gi/0", "main-1: 1Gi/0", "different: main-0 main-1",
         uses={"warm": "main-0", "main": "main-0 main-1"}),
    case("init with more cards", pod(init={"warm": gpu(2, mem=1024)}, main=gpu(1, mem=1024)),
         "main: 1Gi/0", "warm: 1Gi/0", "different: main warm", uses={"warm": "main warm"}),
    case("init over two containers", pod(init={"warm": gpu(2, mem=1024)}, a=gpu(1, mem=1024),
         b=gpu(1, mem=1024)), "a: 1Gi/0", "b: 1Gi/0", "different: a b", uses={"warm": "a b"}),
    case("a sidecar adds", pod(init={"proxy": sidecar(1, mem=1024)}, main=HALF), "main: 10Gi/50",
         "proxy: 1Gi/0"),
    case("init does not take a sidecar's", pod(init={"proxy": sidecar(1, mem=8192),
         "warm": gpu(1, mem=1024)}, main=gpu(1, mem=2048)), "main: 2Gi/0", "proxy: 8Gi/0",
         uses={"warm": "main"}),
    case("a sidecar and init, no container", pod(init={"proxy": sidecar(1, mem=1024),
         "warm": gpu(1, mem=1024)}), "proxy: 1Gi/0", "warm: 1Gi/0"),
    case("init has the priority of whose card it uses", pod(init={"warm": gpu(1, mem=1024,
         priority=1)}, main=gpu(1, mem=1024, priority=0)), "main: 1Gi/0", "priority 0: main",
         uses={"warm": "main"},
         warnings=("init container warm has the priority and core policy of container main",)),
    case("init with a percentage of a container with MiB", pod(init={"warm": gpu(1, percent=50)},
         main=gpu(1, mem=12288)), "main: 23028mi 12Gi/0 where 1", uses={"warm": "main"},
         warnings=("container main may use 12288 MiB or 50 % of memory, because",)),
    refused("init with a percentage beside too much memory", pod(init={"warm": gpu(1, percent=50)},
            main=gpu(1, mem=30000)), "no visible card has the 30000 MiB that another container"),
    refused("wrong amounts of an init container", pod(init={"warm": gpu(1, cores=300)}, main=HALF),
            "init container warm: nvidia.com/gpucores: 300"),
    refused("wrong amounts of a sidecar", pod(init={"proxy": sidecar(0)}, main=HALF),
            "sidecar proxy: nvidia.com/gpu: 0"),
)  # fmt: skip

PERCENTAGES = (
    case("of one size", pod(main=gpu(1, percent=25)), "main: 23028mi 5757Mi/0 where 1"),
    case("without a count", pod(main=gpu(percent=25)), "main: 23028mi 5757Mi/0 where 1"),
    case("rounded down", pod(main=gpu(1, percent=33)), "main: 23028mi 7599Mi/0 where 1"),
    case("of a card so small that it would be nothing", pod(main=gpu(1, percent=1)),
         "main: 50mi 1Mi/0 where 1", facts=facts(*cards(50))),
    case("of three sizes, the smallest first", pod(main=gpu(1, percent=50, cores=20)),
         "main: 15360mi 7680Mi/20 where 1 | 23028mi 11514Mi/20 where 1 | 81920mi 40Gi/20 where 1",
         facts=THREE_SIZES),
    case("of two cards", pod(main=gpu(2, percent=25)), "main-0: 23028mi 5757Mi/0 where 1",
         "main-1: 23028mi 5757Mi/0 where 1", "different: main-0 main-1",
         uses={"main": "main-0 main-1"}),
    case("of cards that an annotation allows", pod(main=gpu(1, percent=50), annotations={
         TYPE: "a100"}), "main: 81920mi 40Gi/0 where 2", facts=THREE_SIZES),
    case("of nine sizes", pod(main=gpu(1, percent=50)),
         "main: " + " | ".join(f"{n}000mi {n * 500}Mi/0 where 1" for n in (1, 2, 3, 5, 6, 7, 8, 9)),
         facts=facts(*cards(*(n * 1000 for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 9))), *cards(
             *(n * 1000 for n in (1, 2, 3, 5, 6, 7, 8)), node="edge-2")),
         warnings=("a claim can name 8 sizes of cards, so the pod can't have those of 4000Mi",)),
    case("with a priority", pod(main=gpu(1, percent=25, priority=1)),
         "main: 23028mi 5757Mi/0 where 1", "priority 1: main"),
    case("beside MiB in another container", pod(a=gpu(1, percent=25), b=gpu(1, mem=1024)),
         "a: 23028mi 5757Mi/0 where 1", "b: 1Gi/0"),
    refused("with no card visible", pod(main=gpu(1, percent=50)),
            "no card is visible yet, so the sizes of cards are unknown", facts=NOTHING),
    case("the whole card needs no size", pod(main=gpu(1, percent=100)), "main: all/all",
         facts=NOTHING, warnings=("no card is visible now",)),
    refused("of a type that nobody has", pod(main=gpu(1, percent=50), annotations={TYPE: "H200"}),
            "no card that nvidia.com/use-gputype allows is visible"),
)  # fmt: skip

CHOICES = (
    case("by type", pod(main=HALF, annotations={TYPE: "A10"}), "main: 10Gi/50 where 1"),
    case("by a part of the type in lower case", pod(main=HALF, annotations={TYPE: "nvidia a10"}),
         "main: 10Gi/50 where 1"),
    case("by several types", pod(main=HALF, annotations={TYPE: "A100, A10,"}),
         "main: 10Gi/50 where 1"),
    case("not by type", pod(main=HALF, annotations={NO_TYPE: "T4"}), "main: 10Gi/50 where 1"),
    case("by UUID", pod(main=HALF, annotations={UUID: "GPU-edge-1-A10-0"}),
         "main: 10Gi/50 where 1"),
    case("not by UUID", pod(main=HALF, annotations={NO_UUID: "GPU-edge-1-A10-0"}),
         "main: 10Gi/50 where 1"),
    case("all four", pod(main=HALF, annotations={
         UUID: "GPU-edge-1-A10-0,GPU-edge-1-A10-1", NO_UUID: "GPU-edge-1-A10-1", TYPE: "A10",
         NO_TYPE: "A100"}), "main: 10Gi/50 where 4"),
    case("for all containers", pod(annotations={TYPE: "A10"}, a=gpu(1, mem=1024),
         b=gpu(1, mem=1024)), "a: 1Gi/0 where 1", "b: 1Gi/0 where 1"),
    case("a type that nobody has", pod(main=HALF, annotations={TYPE: "H200"}),
         "main: 10Gi/50 where 1", warnings=("no visible card is allowed by nvidia.com/use-gpu",)),
    case("UUIDs are exact", pod(main=HALF, annotations={UUID: "gpu-edge-1-a10-0"}),
         "main: 10Gi/50 where 1", warnings=("no visible card is allowed by nvidia.com/use-gpu",)),
    case("quotes and backslashes", pod(main=HALF, annotations={NO_TYPE: '"]) || true \\'}),
         "main: 10Gi/50 where 1"),
    case("letters beyond ASCII", pod(main=HALF, annotations={NO_TYPE: "ÄÖ卡"}),
         "main: 10Gi/50 where 1"),
    case("two cards of which one is excluded", pod(main=gpu(2, mem=1024), annotations={
         NO_UUID: "GPU-edge-1-A10-0"}), "main-0: 1Gi/0 where 1", "main-1: 1Gi/0 where 1",
         "different: main-0 main-1", uses={"main": "main-0 main-1"},
         warnings=("2 cards, but the most that a node has of them is 1",)),
    case("not asked for a card", pod(main=PLAIN, annotations={TYPE: ""}), untouched=True),
    refused("an empty list", pod(main=HALF, annotations={TYPE: " , "}), "it names no card"),
    refused("an entry that is too long", pod(main=HALF, annotations={UUID: "G" * 65}),
            "can't be a part of a card's name"),
    refused("an entry with a line break", pod(main=HALF, annotations={TYPE: "A10\nA100"}),
            "can't be a part of a card's name"),
    refused("too many entries", pod(main=HALF, annotations={
        UUID: ",".join(f"GPU-{n:032}" for n in range(400))}), "more than a claim can hold"),
    refused("an annotation that is no text", pod(main=HALF, annotations={TYPE: 10}),  # type: ignore[dict-item]
            "10 is no text", code=400),
)  # fmt: skip

PLACEMENT = (
    case("the mode that there is", pod(main=HALF, annotations={MODE: "hami-core"}),
         "main: 10Gi/50"),
    refused("MIG", pod(main=HALF, annotations={MODE: "mig"}), '"mig" is not offered'),
    refused("MPS", pod(main=HALF, annotations={MODE: "mps"}), "write hami-core or leave it out"),
    case("binpack of cards is what DRA does", pod(main=HALF, annotations={GPU_POLICY: "binpack"}),
         "main: 10Gi/50"),
    case("spread of one container means nothing", pod(main=HALF, annotations={
         GPU_POLICY: "spread"}), "main: 10Gi/50"),
    case("spread of a container and an init container", pod(init={"warm": gpu(1, mem=1)},
         main=HALF, annotations={GPU_POLICY: "spread"}), "main: 10Gi/50", uses={"warm": "main"}),
    case("spread of two containers", pod(a=gpu(1, mem=1024), b=gpu(1, mem=1024), annotations={
         GPU_POLICY: "spread"}), "a: 1Gi/0", "b: 1Gi/0",
         warnings=("hami.io/gpu-scheduler-policy: spread has no effect",)),
    case("spread as a constraint", pod(a=gpu(1, mem=1024), b=gpu(1, mem=1024), annotations={
         GPU_POLICY: "spread"}), "a: 1Gi/0", "b: 1Gi/0", "different: a b", settings=STRICT),
    case("mutex", pod(main=gpu(1, mem=10240, cores=50), annotations={GPU_POLICY: "mutex"}),
         "main: all/50 where 1", warnings=("mutex: the pod gets cards that nobody uses",)),
    case("mutex of a percentage", pod(main=gpu(1, percent=20), annotations={GPU_POLICY: "mutex"}),
         "main: all/0", warnings=("mutex: the pod gets cards that nobody uses",)),
    case("topology of one card means nothing", pod(main=HALF, annotations={
         GPU_POLICY: "topology-aware"}), "main: 10Gi/50"),
    case("topology of two cards", pod(main=gpu(2), annotations={GPU_POLICY: "topology-aware"}),
         "main-0: all/all", "main-1: all/all", "different: main-0 main-1",
         uses={"main": "main-0 main-1"}, warnings=("topology-aware has no effect",)),
    case("topology as a constraint", pod(main=gpu(2), annotations={
         GPU_POLICY: "topology-aware"}), "main-0: all/all", "main-1: all/all",
         "different: main-0 main-1", "near: main-0 main-1", uses={"main": "main-0 main-1"},
         settings=STRICT),
    case("numa in a list", pod(main=gpu(2), annotations={GPU_POLICY: "binpack, numa"}),
         "main-0: all/all", "main-1: all/all", "different: main-0 main-1",
         uses={"main": "main-0 main-1"}, warnings=("gpu-scheduler-policy: numa has no effect",)),
    case("numa-bind of two cards", pod(main=gpu(2), annotations={NUMA: "true"}), "main-0: all/all",
         "main-1: all/all", "different: main-0 main-1", uses={"main": "main-0 main-1"},
         warnings=("numa-bind: true has no effect: cards don't tell their NUMA node",)),
    case("numa-bind as a constraint", pod(main=gpu(2), annotations={NUMA: "true"}),
         "main-0: all/all", "main-1: all/all", "different: main-0 main-1", "near: main-0 main-1",
         uses={"main": "main-0 main-1"}, settings=STRICT),
    case("numa-bind of one card", pod(main=HALF, annotations={NUMA: "true"}), "main: 10Gi/50"),
    case("numa-bind false", pod(main=gpu(2), annotations={NUMA: "false"}), "main-0: all/all",
         "main-1: all/all", "different: main-0 main-1", uses={"main": "main-0 main-1"}),
    refused("numa-bind maybe", pod(main=HALF, annotations={NUMA: "maybe"}), 'write "true" or'),
    refused("a policy of cards that nobody knows", pod(main=HALF, annotations={
        GPU_POLICY: "binpak"}), '"binpak" is unknown; use one of binpack, spread'),
    case("binpack of nodes", pod(main=HALF, annotations={NODE_POLICY: "binpack"}), "main: 10Gi/50",
         warnings=("kube-scheduler chooses the node; use podAffinity",)),
    case("spread of nodes", pod(main=HALF, annotations={NODE_POLICY: "spread"}), "main: 10Gi/50",
         warnings=("kube-scheduler chooses the node; use topologySpreadConstraints",)),
    refused("a policy of nodes that nobody knows", pod(main=HALF, annotations={
        NODE_POLICY: "numa"}), '"numa" is unknown; use one of binpack, spread'),
    case("scoring weights", pod(main=HALF, annotations={WEIGHTS: "slot=1,core=1,memory=3"}),
         "main: 10Gi/50", warnings=("DRA does not score devices",)),
    case("HAMi's scheduler", pod(main=HALF, spec={"schedulerName": "hami-scheduler"}),
         "main: 10Gi/50", warnings=("schedulerName hami-scheduler",)),
    case("another scheduler", pod(main=HALF, spec={"schedulerName": "volcano"}), "main: 10Gi/50"),
    refused("a node is named", pod(main=HALF, spec={"nodeName": "edge-1"}),
            'spec.nodeName: "edge-1" passes the scheduler by'),
    case("a node is selected", pod(main=HALF, spec={"nodeSelector": {
         "apps.openyurt.io/nodepool": "worker"}}), "main: 10Gi/50"),
)  # fmt: skip

CLUSTER = (
    case("no card visible", pod(main=HALF), "main: 10Gi/50", facts=NOTHING,
         warnings=("no card is visible now: the pod is Pending until a node offers one",)),
    case("more memory than any card", pod(main=gpu(1, mem=40000)), "main: 40000Mi/0",
         warnings=("40000 MiB is more than the largest visible card that it may have (23028",)),
    refused("more memory than any card, refused", pod(main=gpu(1, mem=40000)),
            "ask for less nvidia.com/gpumem", settings=ConversionSettings(refuse_oversized=True)),
    case("no card visible and oversized are refused", pod(main=gpu(1, mem=40000)),
         "main: 40000Mi/0", facts=NOTHING, settings=ConversionSettings(refuse_oversized=True),
         warnings=("no card is visible now",)),
    case("more memory than the allowed cards", pod(main=gpu(1, mem=40000), annotations={
         TYPE: "A10", NO_TYPE: "A100"}), "main: 40000Mi/0 where 2", facts=THREE_SIZES,
         warnings=("more than the largest visible card",)),
    case("all memory of the largest", pod(main=gpu(1, mem=23028)), "main: 23028Mi/0"),
    case("a quota on what is taken away", pod(main=HALF), "main: 10Gi/50",
         facts=facts(*A10S, quotas=("requests.nvidia.com/gpu", "requests.cpu")),
         warnings=("quota on requests.nvidia.com/gpu does not count this pod",)),
    case("HAMi's own quota", pod(main=HALF), "main: 10Gi/50",
         facts=facts(*A10S, quotas=("limits.nvidia.com/gpumem",)),
         warnings=("quota on limits.nvidia.com/gpumem does not count this pod",)),
    case("a quota on what is not asked for", pod(main=gpu(1)), "main: all/all",
         facts=facts(*A10S, quotas=("limits.nvidia.com/gpumem",))),
    case("a class that claims the same resource", pod(main=HALF), "main: 10Gi/50",
         facts=facts(*A10S, extended=("nvidia.com/gpu",)),
         warnings=("a DeviceClass has extendedResourceName nvidia.com/gpu",)),
)  # fmt: skip

PODS = (
    case("nothing for us", pod(main=PLAIN), untouched=True),
    case("other resources", pod(main={**PLAIN, "resources": {"limits": {
         "cpu": 1, "amd.com/gpu": 1}}}),
         untouched=True),
    case("the label that keeps the webhook away", pod(main=HALF, labels={
         "hami.io/webhook": "ignore"}), untouched=True),
    case("that label with another value", pod(main=HALF, labels={"hami.io/webhook": "on"}),
         "main: 10Gi/50"),
    case("a generated name", pod(main=HALF, generate_name="job-"), "main: 10Gi/50"),
    case("labels and annotations", pod(main=HALF, labels={"app": "a"}, annotations={"note": "b"}),
         "main: 10Gi/50"),
    case("claims of its own", pod(main={**HALF, "resources": {
         **HALF["resources"], "claims": [{"name": "own"}]}}, spec={"resourceClaims": [
             {"name": "own", "resourceClaimName": "mine"}]}), "main: 10Gi/50"),
    case("a claim of our name", pod(main=HALF, spec={"resourceClaims": [
         {"name": "casaba-gpus", "resourceClaimName": "mine"}]}), "main: 10Gi/50"),
    case("limits of the pod", pod(main=HALF, spec={"resources": {"limits": {"cpu": "2"}}}),
         "main: 10Gi/50"),
    case("not privileged", pod(main={**HALF, "securityContext": {"privileged": False}}),
         "main: 10Gi/50"),
    case("privileged without a card", pod(main=HALF, other={
         **PLAIN, "securityContext": {"privileged": True}}), "main: 10Gi/50"),
    refused("privileged", pod(main={**HALF, "securityContext": {"privileged": True}}),
            "container main: it is privileged and would see whole cards", code=403),
    refused("a privileged init container", pod(init={"warm": {
        **HALF, "securityContext": {"privileged": True}}}), "init container warm: it is priv",
        code=403),
    refused("cards for the whole pod", pod(main=PLAIN, spec={"resources": {"limits": {
        "nvidia.com/gpu": 1}}}), "spec.resources: nvidia.com/gpu and its like can't be shared"),
    refused("an ephemeral container", pod(main=PLAIN, spec={"ephemeralContainers": [
        {"name": "debug", **HALF}]}), "ephemeral container debug: it can't have resources"),
    refused("a name that is no label", pod(main=PLAIN, spec={"containers": [
        {"name": "Main", **HALF}]}), 'spec/containers/0: name "Main" is no DNS label'),
    refused("no name", pod(main=PLAIN, spec={"containers": [HALF]}), 'name "" is no DNS label'),
)  # fmt: skip

CASES = (
    *AMOUNTS,
    *DEFAULTS,
    *PARAMETERS,
    *COUNTS,
    *INIT,
    *PERCENTAGES,
    *CHOICES,
    *PLACEMENT,
    *CLUSTER,
    *PODS,
)
