"""What is said of a claim before it is stored."""

import dataclasses
from typing import Any

import pytest

from casaba.model.ids import GpuUuid
from casaba.policy.admit import Verdict, judge_claim
from tests.unit.policy.admit.claims import (
    DRIVER,
    Spec,
    a_class,
    a_slice,
    amounts,
    claim,
    first_of,
    flat,
    judged,
    parameters,
    request,
)
from tests.unit.values import A10

SECOND = dataclasses.replace(A10, minor=1, uuid=GpuUuid("GPU-00000000-0000-0000-0000-000000000001"))
EXACTLY = "spec.devices.requests[0].exactly"
REQUESTS = f"{EXACTLY}.capacity.requests"
FITTING = {"cores": 10, "memory": "1Gi"}
DISTINCT = {"distinctAttribute": f"{DRIVER}/uuid"}
SAME = {"matchAttribute": f"{DRIVER}/uuid"}


def selecting(expression: str) -> Spec:
    """A request with a selector."""
    return request(selectors=[{"cel": {"expression": expression}}], capacity={"requests": FITTING})


@pytest.mark.parametrize(
    "spec",
    [
        claim(amounts(cores=50, memory="10Gi")),
        claim(amounts(cores=0, memory="1Mi")),
        claim(amounts(cores=100, memory="23028Mi")),
        claim(request()),
        claim(flat(amounts(cores=50, memory="10Gi"))),
        claim(first_of({"cores": 50, "memory": "40Gi"}, {"cores": 50, "memory": "10Gi"})),
        claim(amounts(**FITTING), amounts(**FITTING) | {"name": "b"}, constraints=[SAME]),
        claim(selecting(f'device.attributes["{DRIVER}"].productName.contains("A10")')),
        claim(amounts(**FITTING), config=[parameters(weight=5, requests=("gpu",))]),
        claim(amounts(**FITTING), request("nic", "nic.example.com"), constraints=[DISTINCT]),
        claim(request("nic", "nic.example.com", capacity={"requests": {"gpumem": 1}})),
        claim(config=[parameters("gpu.nvidia.com")]),
        {},
        {"devices": {}},
    ],
)
def test_what_can_be_had_is_left_alone(spec: Spec) -> None:
    assert judged(spec) == Verdict()


@pytest.mark.parametrize(
    ("asked", "key", "text"),
    [
        ({"gpumem": 10240}, "gpumem", 'write memory: "10240Mi"'),
        ({"gpumem": "10Gi"}, "gpumem", 'write memory: "10Gi"'),
        ({"nvidia.com/gpumem": "1"}, "nvidia.com/gpumem", 'write memory: "1Mi"'),
        ({"gpucores": 30}, "gpucores", "write cores: 30"),
        ({f"{DRIVER}/memory": 1}, f"{DRIVER}/memory", "letter by letter; write memory"),
        ({"Memory": "1Gi"}, "Memory", "did you mean memory?"),
        ({"vram": "1Gi"}, "vram", "did you mean memory?"),
        ({"core": 1}, "core", "did you mean cores?"),
        ({"slots": 1}, "slots", "there are cores and memory"),
        ({"memory": "much"}, "memory", "'much' is not a quantity; write 10Gi or 512Mi"),
        ({"memory": None}, "memory", "None is not a quantity"),
        ({"memory": True}, "memory", "True is not a quantity"),
        ({"memory": 10240}, "memory", "10240 bytes are less than the smallest slice, 1Mi"),
        ({"memory": "1023Ki"}, "memory", "less than the smallest slice"),
        ({"memory": 0}, "memory", "0 is not an amount of memory; ask for 1Mi or more"),
        ({"memory": "-1Gi"}, "memory", "-1Gi is not an amount of memory"),
        ({"cores": 101}, "cores", "101 is not a percentage of one card's compute; ask for 0 to"),
        ({"cores": "100001m"}, "cores", "100001m is not a percentage"),
        ({"cores": -1}, "cores", "-1 is not a percentage"),
        ({"cores": "half"}, "cores", "'half' is not a quantity; write a whole number such as 50"),
    ],
)
@pytest.mark.parametrize("form", [amounts, lambda **asked: flat(amounts(**asked))])
def test_amounts_that_never_work(form: Any, asked: Spec, key: str, text: str) -> None:
    (refusal,) = judged(claim(form(**asked))).refusals
    path, _, sentence = refusal.partition(": ")
    assert path.removeprefix("spec.devices.requests[0].").removeprefix("exactly.") == (
        f"capacity.requests[{key}]"
    )
    assert text in sentence


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"cores": 1, "memory": "10G"}, f"{REQUESTS}[memory]: 10G is no whole number of Mi: the"),
        ({"cores": "500m", "memory": "1Gi"}, f"{REQUESTS}[cores]: 500m is no whole number"),
        ({"cores": 1, "memory": "40Gi"}, "40Gi is more than any card has that is visible now (the"),
        ({"memory": "1Gi"}, f"{REQUESTS}: cores is not asked for, so all 100 are taken"),
        ({"cores": 1}, f"{REQUESTS}: memory is not asked for, so all memory of the card is taken"),
    ],
)
def test_amounts_that_are_taken_otherwise(asked: Spec, text: str) -> None:
    verdict = judged(claim(amounts(**asked)))
    assert not verdict.refusals
    (warning,) = verdict.warnings
    assert text in warning


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (
            claim(request(adminAccess=True)),
            [f"{EXACTLY}.adminAccess: this driver does not give it"],
        ),
        (claim(request(count=33)), [f"{EXACTLY}.count: 33 devices are more than a claim can"]),
        (
            claim(first_of({"memory": "1Gi"}, {"gpumem": 1})),
            ["spec.devices.requests[0].firstAvailable[1].capacity.requests[gpumem]: no card"],
        ),
        (
            claim(request(), constraints=[{"matchAttribute": f"{DRIVER}/uid"}]),
            ["spec.devices.constraints[0].matchAttribute: no card has the attribute"],
        ),
        (
            claim(request(), request("b"), constraints=[DISTINCT, SAME]),
            ["spec.devices.constraints[0].distinctAttribute: 'hami-core-gpu.project-hami.io/uuid'"],
        ),
        (
            claim(request(), config=[parameters(weight=0)]),
            ["spec.devices.config[0].opaque.parameters.weight: 0 is not a whole number"],
        ),
        (
            claim(config=[parameters(weight=0)]),
            ["spec.devices.config[0].opaque.parameters.weight: 0 is not a whole number"],
        ),
        (
            claim(request(), config=[{"opaque": {"driver": DRIVER}}]),
            ["spec.devices.config[0].opaque.parameters: not an object; write casaba.dev/v1alpha1"],
        ),
        (
            claim(
                request(),
                config=[parameters(apiVersion="resource.nvidia.com/v1beta1", kind="GpuConfig")],
            ),
            ["spec.devices.config[0].opaque.parameters.kind: 'GpuConfig' of resource.nvidia.com"],
        ),
        (
            claim(amounts(gpumem=1, gpucores=2)),
            [f"{REQUESTS}[gpumem]: ", f"{REQUESTS}[gpucores]: "],
        ),
    ],
)
def test_what_never_works_is_refused_by_field(spec: Spec, texts: list[str]) -> None:
    refusals = judged(spec).refusals
    assert len(refusals) == len(texts)
    for refusal, text in zip(refusals, texts, strict=True):
        assert refusal.startswith(text)


def test_a_templates_paths_are_its_own() -> None:
    (refusal,) = judged(claim(request(count=33)), at="spec.spec").refusals
    assert refusal.startswith("spec.spec.devices.requests[0].exactly.count: ")


UNMET = f'device.attributes["{DRIVER}"].productName == "A10"'


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (claim(request(count=2)), "will stay Pending: request gpu: 2 devices are needed, 1 can be"),
        (
            claim(amounts(**FITTING), request("b"), constraints=[DISTINCT]),
            "will stay Pending: ",
        ),
        (claim(selecting(UNMET)), "hami-gpu-0 on edge-gpu-a10: request selector does not match"),
        (claim(selecting(f'device.attributes["{DRIVER}"].nothing')), "no such key: nothing"),
        (
            claim(request(), constraints=[{"matchAttribute": "nic.example.com/numa"}]),
            "spec.devices.constraints[0].matchAttribute: no card that is visible now has the",
        ),
        (
            claim(request(allocationMode="All")),
            f"{EXACTLY}.allocationMode: All takes this much of every matching card",
        ),
        (
            claim(request(), config=[parameters("gpu.nvidia.com")]),
            "spec.devices.config[0].opaque.driver: 'gpu.nvidia.com' serves none of the requests",
        ),
    ],
)
def test_what_waits_or_is_not_read_is_told(spec: Spec, text: str) -> None:
    verdict = judged(spec)
    assert not verdict.refusals
    assert any(text in warning for warning in verdict.warnings)


def test_one_node_that_could_serve_it_is_enough() -> None:
    spec = claim(request(count=2))
    assert judged(spec, a_slice("edge-1"), a_slice("edge-2", A10, SECOND)) == Verdict()


def test_two_cards_of_two_nodes_are_not_had_together() -> None:
    spec = claim(request(count=2))
    (warning,) = judged(spec, a_slice("edge-1"), a_slice("edge-2")).warnings
    assert warning == "will stay Pending: request gpu: 2 devices are needed, 1 can be had at once"


def test_the_one_card_with_the_uuid_is_found_among_many_nodes() -> None:
    expression = f'device.attributes["{DRIVER}"].uuid == "{SECOND.uuid}"'
    many = [a_slice(f"edge-{number:03}") for number in range(20)]
    assert judged(claim(selecting(expression)), *many, a_slice("last", SECOND)) == Verdict()


def test_many_nodes_of_one_sort_say_it_once() -> None:
    many = [
        a_slice(f"edge-{number:03}", dataclasses.replace(A10, minor=number))
        for number in range(300)
    ]
    (warning,) = judged(claim(selecting(UNMET)), *many).warnings
    assert warning.count("does not match") == 1
    assert warning.startswith("will stay Pending: request gpu: hami-gpu-0 on edge-000: ")


def test_conditions_on_all_attributes_see_them_all() -> None:
    expression = f'device.attributes["{DRIVER}"].exists(k, k == "minor")'
    every = [a_slice("edge-1"), a_slice("edge-2", SECOND)]
    assert judged(claim(selecting(expression)), *every) == Verdict()


def test_without_cards_or_class_the_claim_waits() -> None:
    spec = claim(request())
    (no_cards,) = judge_claim(spec, (), a_class()).warnings
    assert no_cards == f"will stay Pending: no node offers a card of driver {DRIVER} now"
    (no_class,) = judge_claim(spec, (a_slice(),), {}).warnings
    assert no_class.startswith(f"will stay Pending: DeviceClass {DRIVER} does not exist")


def test_other_drivers_slices_count_for_nothing() -> None:
    other = a_slice()
    other = type(other)(
        metadata=other.metadata, spec=type(other.spec)(driver="x", pool=other.spec.pool)
    )
    (warning,) = judged(claim(request()), other).warnings
    assert "no node offers a card" in warning


def test_a_wrong_config_of_the_class_is_told_to_who_will_meet_it() -> None:
    verdict = judge_claim(claim(request()), (a_slice(),), a_class({"kind": "Slice"}))
    (warning,) = verdict.warnings
    assert warning.startswith(f"DeviceClass {DRIVER}, spec.config[0]: apiVersion: nothing")
    assert "administrator" in warning
