"""The sentences of the real scheduler, word for word."""

from casaba.simulation.scheduler.filters import NodeRefusal
from casaba.simulation.scheduler.messages import (
    NOTHING_TO_DEALLOCATE,
    STILL_NOT,
    unfit_by_itself,
    unfit_everywhere,
)


def refused(*reasons: str, others_are_in_the_way: bool = False) -> NodeRefusal:
    return NodeRefusal(
        reasons=reasons, cures=frozenset(), others_are_in_the_way=others_are_in_the_way
    )


def test_reasons_are_counted_and_sorted_as_text() -> None:
    devices = refused("cannot allocate all claims")
    elsewhere = refused("node(s) didn't match Pod's node affinity/selector")
    assert unfit_everywhere([elsewhere, devices], STILL_NOT) == (
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node "
        "affinity/selector. still not schedulable, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


def test_where_an_emptier_node_would_do_there_are_no_victims() -> None:
    full = refused("Insufficient cpu", others_are_in_the_way=True)
    small = refused("Insufficient cpu")
    assert unfit_everywhere([full, small], NOTHING_TO_DEALLOCATE) == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_what_is_wrong_with_the_pod_itself_is_not_counted_by_nodes() -> None:
    assert unfit_by_itself("request gpu: device class nix does not exist", 3) == (
        "0/3 nodes are available: request gpu: device class nix does not exist. no new claims to "
        "deallocate, preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_must_not_preempt_says_so() -> None:
    said = unfit_everywhere([refused("Too many pods")], STILL_NOT, may_preempt=False)
    assert said.endswith(", preemption: not eligible due to preemptionPolicy=Never.")
