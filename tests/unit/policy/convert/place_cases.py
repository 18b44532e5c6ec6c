"""Pods by where they may run and what else is in them: cards, clusters."""

from dataclasses import replace

from casaba.settings.conversion import ConversionSettings
from tests.unit.policy.convert.case import (
    GPU_POLICY,
    HALF,
    MODE,
    NO_TYPE,
    NO_UUID,
    NODE_POLICY,
    NUMA,
    STRICT,
    TYPE,
    UUID,
    WEIGHTS,
    case,
    refused,
)
from tests.unit.policy.convert.pods import (
    A10_MIB,
    A10S,
    NOTHING,
    PLAIN,
    THREE_SIZES,
    cards,
    facts,
    gpu,
    pod,
    sidecar,
)

MANY_SIZES = facts(
    *(
        replace(card, uuid=f"GPU-{n:036}")
        for n, card in enumerate(cards(*(n * 1024 for n in (8, 10, 12, 16, 24, 32, 48, 80))))
    )
)

CHOICES = (
    case("by type", pod(main=HALF, annotations={TYPE: "A10"}), "main: 10Gi/50 where 1"),
    case("by a part of the type in lower case", pod(main=HALF, annotations={TYPE: "nvidia a10"}),
         "main: 10Gi/50 where 1"),
    case("by the type as HAMi registers it", pod(main=HALF, annotations={
         TYPE: "NVIDIA-NVIDIA A10"}), "main: 10Gi/50 where 1"),
    case("not by the type as HAMi registers it", pod(main=HALF, annotations={
         NO_TYPE: "NVIDIA-nvidia a10"}), "main: 10Gi/50 where 1",
         warnings=("no visible card is allowed by nvidia.com/nouse-gputype",)),
    case("by as many types as a claim takes", pod(main=HALF, annotations={
         TYPE: ",".join(["NVIDIA-NVIDIA A10", *(f"{n:064}" for n in range(140))])}),
         "main: 10Gi/50 where 1"),
    case("by as many short types as a claim takes", pod(main=HALF, annotations={
         TYPE: ",".join(["A10", *(f"{n:x}" for n in range(256, 1500))])}),
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
    refused("modes that there are not", pod(main=HALF, annotations={MODE: "mig,mps"}),
            '"mig,mps" is not offered'),
    case("a list with the mode that there is", pod(main=HALF, annotations={
         MODE: "mig, hami-core"}), "main: 10Gi/50"),
    case("spread of one container", pod(main=HALF, annotations={GPU_POLICY: "spread"}),
         "main: 10Gi/50", warnings=("spread has no effect: the first card that has room",)),
    case("spread of one container as a constraint", pod(main=HALF, annotations={
         GPU_POLICY: "spread"}), "main: 10Gi/50", settings=STRICT,
         warnings=("spread has no effect: the first card that has room is taken, also beside",)),
    case("spread of two cards of one container", pod(main=gpu(2), annotations={
         GPU_POLICY: "spread"}), "main-0: all/all", "main-1: all/all", "different: main-0 main-1",
         uses={"main": "main-0 main-1"}, settings=STRICT, warnings=("spread has no effect",)),
    case("spread of a container and an init container", pod(init={"warm": gpu(1, mem=1)},
         main=gpu(1, mem=1024), annotations={GPU_POLICY: "spread"}), "main: 1Gi/0",
         uses={"warm": "main"}, warnings=("spread has no effect",)),
    case("spread as a constraint of a sidecar and an init container", pod(init={
         "proxy": sidecar(1, mem=1), "warm": gpu(1, mem=1)}, annotations={GPU_POLICY: "spread"}),
         "proxy: 1Mi/0", "warm: 1Mi/0", "different: proxy warm", settings=STRICT),
    case("spread as a constraint and a large init container", pod(init={"warm": gpu(1, mem=2048)},
         a=gpu(1, mem=1024), b=gpu(1, mem=1024), annotations={GPU_POLICY: "spread"}), "a: 2Gi/0",
         "b: 1Gi/0", "different: a b", uses={"warm": "a"}, settings=STRICT,
         warnings=("container a may use 2048 MiB",)),
    case("spread of two containers", pod(a=gpu(1, mem=1024), b=gpu(1, mem=1024), annotations={
         GPU_POLICY: "spread"}), "a: 1Gi/0", "b: 1Gi/0",
         warnings=("hami.io/gpu-scheduler-policy: spread has no effect",)),
    case("spread as a constraint", pod(a=gpu(1, mem=1024), b=gpu(1, mem=1024), annotations={
         GPU_POLICY: "spread"}), "a: 1Gi/0", "b: 1Gi/0", "different: a b", settings=STRICT),
    case("mutex", pod(main=gpu(1, mem=10240, cores=50), annotations={GPU_POLICY: "mutex"}),
         "main: all/50 where 1", warnings=("mutex: the pod gets cards that nobody uses",)),
    case("mutex of all cores", pod(main=gpu(1, mem=1024, cores=100), annotations={
         GPU_POLICY: "mutex"}), "main: all/all where 1", warnings=("mutex: the pod gets cards",)),
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
    refused("more rules on cards than a claim takes", pod(init={"warm": gpu(2, mem=2)},
            annotations={GPU_POLICY: "topology-aware"}, **{
            f"c{n}": gpu(2, mem=1) for n in range(16)}),  # type: ignore[arg-type]
            "need 34 rules on which cards are different", settings=STRICT),
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
    case("more at one time than a node has", pod(init={"proxy": sidecar(1, mem=23028),
         "warm": gpu(1, mem=23028)}, main=gpu(1, mem=1024)), "main: 23028Mi/0",
         "proxy: 23028Mi/0", uses={"warm": "main"}, facts=facts(*cards(A10_MIB)),
         warnings=("container main may use 23028 MiB", "at one time the pod needs 46056 MiB")),
    case("more cores at one time than a node has", pod(**{
         f"c{n}": gpu(1, mem=1, cores=70) for n in range(3)}), *(  # type: ignore[arg-type]
         f"c{n}: 1Mi/70" for n in range(3)), warnings=("at one time the pod needs 210 cores",)),
    case("all memory of the largest", pod(main=gpu(1, mem=23028)), "main: 23028Mi/0"),
    case("a quota on what is taken away", pod(main=HALF), "main: 10Gi/50",
         facts=facts(*A10S, quotas=("requests.nvidia.com/gpu", "requests.cpu")),
         warnings=("quota on requests.nvidia.com/gpu does not count this pod",)),
    case("HAMi's own quota", pod(main=HALF), "main: 10Gi/50",
         facts=facts(*A10S, quotas=("limits.nvidia.com/gpumem",)),
         warnings=("quota on limits.nvidia.com/gpumem does not count this pod",)),
    case("HAMi's quota on cards, which it adds", pod(main=gpu(mem=1024)), "main: 1Gi/0",
         facts=facts(*A10S, quotas=("requests.nvidia.com/gpu",)),
         warnings=("quota on requests.nvidia.com/gpu does not count this pod",)),
    case("a quota on cards, and no card asked for", pod(main=gpu(priority=1)),
         facts=facts(*A10S, quotas=("requests.nvidia.com/gpu",)),
         warnings=("nvidia.com/priority asks for no card",)),
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
    refused("a template that nobody keeps", pod(annotations={UUID: ",".join(
        f"GPU-{n:036}" for n in range(220))}, **{f"c{n}": gpu(1, percent=50) for n in range(32)}),  # type: ignore[arg-type]
        "and not more than 1024 are kept: name fewer UUIDs", facts=MANY_SIZES),
    refused("no name", pod(main=PLAIN, spec={"containers": [HALF]}), 'name "" is no DNS label'),
)  # fmt: skip
