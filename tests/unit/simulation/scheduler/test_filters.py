"""Whether a pod may run on a node, but for devices."""

from typing import Any

import msgspec
import pytest

from casaba.simulation.scheduler.filters import refusal
from casaba.simulation.workloads.objects import Node, Pod


def node(name: str = "a", **spec: Any) -> Node:
    labels = {"zone": "north", "slots": "7"}
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3", "x.io/y": "1"}},
    }
    return msgspec.convert(body, Node)


def pod(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod)


def asking(*requests: dict[str, str], **spec: Any) -> Pod:
    containers = [
        {"name": f"c{number}", "resources": {"requests": asked}}
        for number, asked in enumerate(requests)
    ]
    return pod(containers=containers, **spec)


def reasons(pod: Pod, node: Node, others: tuple[Pod, ...] = ()) -> tuple[str, ...]:
    refused = refusal(pod, node, others)
    return refused.reasons if refused else ()


def test_a_plain_pod_may_run_anywhere() -> None:
    assert reasons(pod(), node()) == ()


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cordoned = node(unschedulable=True)
    assert reasons(pod(), cordoned) == ("node(s) were unschedulable",)
    everything = [{"operator": "Exists"}]
    assert reasons(pod(tolerations=everything), cordoned) == ()


def test_taints_keep_away_unless_tolerated() -> None:
    untolerated = ("node(s) had untolerated taint(s)",)
    tainted = node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert reasons(pod(), tainted) == untolerated
    for toleration, tolerated in (
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ):
        expected = () if tolerated else untolerated
        assert reasons(pod(tolerations=[toleration]), tainted) == expected


def test_a_preference_of_the_node_keeps_nobody_away() -> None:
    assert reasons(pod(), node(taints=[{"key": "k", "effect": "PreferNoSchedule"}])) == ()


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["south", "north"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["north"]}, False),
        ({"key": "rack", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "slots", "operator": "Gt", "values": ["6"]}, True),
        ({"key": "slots", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "slots", "operator": "Lt", "values": ["8"]}, True),
        ({"key": "zone", "operator": "Lt", "values": ["8"]}, False),
    ],
)
def test_required_affinity_by_labels(expression: dict[str, Any], matches: bool) -> None:
    terms = [{"matchExpressions": [expression]}]
    wanted = pod(affinity=affinity(terms))
    missed = ("node(s) didn't match Pod's node affinity/selector",)
    assert reasons(wanted, node()) == (() if matches else missed)


def test_required_affinity_by_name() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    wanted = pod(affinity=affinity([{"matchFields": [field]}]))
    assert reasons(wanted, node("a")) == ()
    assert reasons(wanted, node("b"))


def test_one_of_several_terms_is_enough_and_an_empty_one_is_none() -> None:
    here = {"key": "zone", "operator": "Exists"}
    nowhere = {"key": "zone", "operator": "DoesNotExist"}
    either = affinity([{"matchExpressions": [nowhere]}, {"matchExpressions": [here]}])
    assert reasons(pod(affinity=either), node()) == ()
    assert reasons(pod(affinity=affinity([{}])), node())


def affinity(terms: list[dict[str, Any]]) -> dict[str, Any]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {key: {"nodeSelectorTerms": terms}}}


def test_node_selector_needs_every_label() -> None:
    assert reasons(pod(nodeSelector={"zone": "north"}), node()) == ()
    assert reasons(pod(nodeSelector={"zone": "north", "rack": "1"}), node())


def test_requests_of_all_containers_count_and_each_shortage_is_told() -> None:
    big = asking({"cpu": "1500m", "memory": "600Mi"}, {"cpu": "600m", "memory": "600Mi"})
    assert reasons(big, node()) == ("Insufficient cpu", "Insufficient memory")
    assert reasons(asking({"x.io/y": "2"}), node()) == ("Insufficient x.io/y",)
    assert reasons(asking({"cpu": "1500m"}, {"cpu": "0.5"}), node()) == ()


def test_what_others_ask_is_taken() -> None:
    half = asking({"cpu": "1"})
    assert reasons(half, node(), (half,)) == ()
    refused = refusal(half, node(), (half, half))
    assert refused is not None
    assert refused.reasons == ("Insufficient cpu",)
    assert refused.others_are_in_the_way
    too_big = refusal(asking({"cpu": "3"}), node(), ())
    assert too_big is not None
    assert not too_big.others_are_in_the_way


def test_a_node_takes_only_so_many_pods() -> None:
    assert reasons(pod(), node(), (pod(), pod(), pod())) == ("Too many pods",)


def test_init_containers_count_by_the_largest_and_stay_if_they_restart() -> None:
    def starting(*inits: dict[str, Any]) -> Pod:
        return asking({"cpu": "1"}, initContainers=list(inits))

    def init(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": f"i{cpu}", "resources": {"requests": {"cpu": cpu}}, **more}

    assert reasons(starting(init("2"), init("1")), node()) == ()
    assert reasons(starting(init("2.1")), node()) == ("Insufficient cpu",)
    stays = init("1.5", restartPolicy="Always")
    assert reasons(starting(stays), node()) == ("Insufficient cpu",)
    assert reasons(starting(init("0.5", restartPolicy="Always"), init("1.6")), node())


def test_overhead_counts() -> None:
    assert reasons(asking({"cpu": "1.5"}, overhead={"cpu": "600m"}), node())
