"""Cases of where devices can be used."""

from tests.conformance.allocator.building import (
    NODE_LABEL,
    UNIVERSE,
    ZONE_LABEL,
    claim,
    device,
    exactly,
    gpu_class,
    label,
    node,
    node_name,
    slice_,
    where,
)
from tests.conformance.allocator.case import Case, Denied, given
from tests.conformance.allocator.forms import gpus

_ONLY_A = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name("a")]}]}
    ]
}

_NODES = (
    Case(
        name="devices of one node are not for another",
        slices=[slice_(*gpus("g0"))],
        classes=[gpu_class()],
        claims=[claim(exactly())],
        nodes=[node("a"), node("b")],
        expected={"a": given("gpu=g0", selector=_ONLY_A), "b": Denied()},
    ),
    Case(
        name="devices for all nodes",
        slices=[slice_(*gpus("g0"), on=None, allNodes=True)],
        classes=[gpu_class()],
        claims=[claim(exactly())],
        nodes=[node("a"), node("b")],
        expected={"a": given("gpu=g0", selector={}), "b": given("gpu=g0", selector={})},
    ),
    Case(
        name="devices for nodes with a label",
        slices=[
            slice_(
                *gpus("g0"),
                on=None,
                nodeSelector=where(
                    label(ZONE_LABEL, "In", UNIVERSE), label("rack", "In", "r1", "r2")
                ),
            )
        ],
        classes=[gpu_class()],
        claims=[claim(exactly())],
        nodes=[node("a", rack="r1"), node("b", rack="r3")],
        expected={
            "a": given(
                "gpu=g0",
                selector=where(label(ZONE_LABEL, "In", UNIVERSE), label("rack", "In", "r1", "r2")),
            ),
            "b": Denied(),
        },
    ),
    *(
        Case(
            name=f"node selectors: {operator} {' '.join(values)}",
            slices=[
                slice_(
                    *gpus("g0"),
                    on=None,
                    nodeSelector=where(
                        label(ZONE_LABEL, "In", UNIVERSE), label("size", operator, *values)
                    ),
                )
            ],
            classes=[gpu_class()],
            claims=[claim(exactly())],
            nodes=[node("a", size="5"), node("b")],
            expected={"a": on_a, "b": on_b},
        )
        for operator, values, on_a, on_b in (
            ("NotIn", ("5", "6"), Denied(), given("gpu=g0")),
            ("Exists", (), given("gpu=g0"), Denied()),
            ("DoesNotExist", (), Denied(), given("gpu=g0")),
            ("Gt", ("4",), given("gpu=g0"), Denied()),
            ("Lt", ("5",), Denied(), Denied()),
        )
    ),
    Case(
        name="each device says where it can be used",
        slices=[
            slice_(
                device("g0", nodeName=node_name("b")),
                device("g1", nodeName=node_name("a")),
                device("g2", nodeSelector=where(label(NODE_LABEL, "In", node_name("c")))),
                on=None,
                perDeviceNodeSelection=True,
            )
        ],
        classes=[gpu_class()],
        claims=[claim(exactly())],
        nodes=[node("a"), node("b"), node("c"), node("d")],
        expected={
            "a": given("gpu=g1", selector=_ONLY_A),
            "b": given("gpu=g0"),
            "c": given("gpu=g2", selector=where(label(NODE_LABEL, "In", node_name("c")))),
            "d": Denied(),
        },
    ),
    Case(
        name="a device that binds to the node narrows the allocation",
        slices=[
            slice_(
                device("g0", bindsToNode=True),
                on=None,
                nodeSelector=where(label(ZONE_LABEL, "In", UNIVERSE)),
            )
        ],
        classes=[gpu_class()],
        claims=[claim(exactly())],
        expected={"a": given("gpu=g0", selector=_ONLY_A)},
    ),
    Case(
        name="selectors of several slices are merged",
        slices=[
            slice_(
                *gpus("g0"),
                name="a",
                pool="a",
                on=None,
                nodeSelector=where(label(ZONE_LABEL, "In", UNIVERSE)),
            ),
            slice_(
                *gpus("g1"),
                name="b",
                pool="b",
                on=None,
                nodeSelector=where(label(ZONE_LABEL, "In", UNIVERSE), label("rack", "Exists")),
            ),
        ],
        classes=[gpu_class()],
        claims=[claim(exactly(count=2))],
        nodes=[node("a", rack="r1")],
        expected={
            "a": given(
                "gpu=g0",
                "gpu=g1",
                selector=where(label(ZONE_LABEL, "In", UNIVERSE), label("rack", "Exists")),
            )
        },
    ),
)


CASES = _NODES
