"""Converted pods on cards: what they get is what they asked for."""

from typing import Any

from casaba.policy.allocation import Refused
from casaba.policy.convert import convert_pod
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object
from tests.unit.policy.convert.clusters import Cluster, gpus, odd_slice, shares
from tests.unit.policy.convert.pods import A10_MIB, A100_MIB, T4_MIB, gpu, patched, pod, sidecar

NODE = "edge-1"
TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
UUID, NO_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
GPU_POLICY = "hami.io/gpu-scheduler-policy"
HALF = gpu(1, mem=10240, cores=50)

Given = dict[str, list[tuple[str, int, int]]] | None
"""For each container its (device, MiB, cores); None if the pod does not fit."""


def placed(cluster: Cluster, one: Object, node: str = NODE, **settings: Any) -> Given:
    conversion = convert_pod(one, cluster.facts, ConversionSettings(**settings))
    result = cluster.place(conversion, node)
    if isinstance(result, Refused):
        return None
    return dict(shares(patched(one, conversion), result))


def test_two_halves_fit_on_a_card_and_a_third_does_not() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB)})
    for _ in range(2):
        assert placed(cluster, pod(main=HALF)) == {"main": [("hami-gpu-0", 10240, 50)]}
    assert placed(cluster, pod(main=HALF)) is None
    assert placed(cluster, pod(main=gpu(1, mem=1024))) == {"main": [("hami-gpu-0", 1024, 0)]}


def test_pods_of_memory_only_share_a_card_to_the_last_mib() -> None:
    cluster = Cluster(**{NODE: gpus(4096)})
    for _ in range(4):
        assert placed(cluster, pod(main=gpu(mem=1024))) == {"main": [("hami-gpu-0", 1024, 0)]}
    assert placed(cluster, pod(main=gpu(mem=1))) is None


def test_count_only_is_the_card_for_one() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB)})
    assert placed(cluster, pod(main=gpu(1))) == {"main": [("hami-gpu-0", A10_MIB, 100)]}
    assert placed(cluster, pod(main=gpu(mem=1))) is None


def test_several_cards_are_different_cards_though_one_would_have_room() -> None:
    cluster = Cluster(one=gpus(A10_MIB), **{NODE: gpus(A10_MIB, A10_MIB)})
    two = pod(main=gpu(2, mem=1024, cores=10))
    assert placed(cluster, two, "one") is None
    assert placed(cluster, two) == {"main": [("hami-gpu-0", 1024, 10), ("hami-gpu-1", 1024, 10)]}
    assert placed(cluster, two) == {"main": [("hami-gpu-0", 1024, 10), ("hami-gpu-1", 1024, 10)]}


def test_containers_may_share_a_card() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB)})
    both = pod(a=gpu(1, mem=1024, cores=10), b=gpu(1, mem=2048, cores=20))
    assert placed(cluster, both) == {
        "a": [("hami-gpu-0", 1024, 10)],
        "b": [("hami-gpu-0", 2048, 20)],
    }


def test_a_percentage_is_of_the_card_that_is_given() -> None:
    cluster = Cluster(
        small=gpus(A10_MIB), large=gpus(A100_MIB), mixed=gpus(A100_MIB, A10_MIB, A100_MIB)
    )
    quarter = pod(main=gpu(1, percent=25, cores=10))
    assert placed(cluster, quarter, "small") == {"main": [("hami-gpu-0", 5757, 10)]}
    assert placed(cluster, quarter, "large") == {"main": [("hami-gpu-0", 20480, 10)]}
    given = [placed(cluster, quarter, "mixed") for _ in range(5)]
    smaller = {"main": [("hami-gpu-1", 5757, 10)]}
    assert given == [smaller] * 4 + [{"main": [("hami-gpu-0", 20480, 10)]}]


def test_a_percentage_of_several_cards() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB, A100_MIB, A10_MIB)})
    two = pod(main=gpu(2, percent=50))
    assert placed(cluster, two) == {"main": [("hami-gpu-0", 11514, 0), ("hami-gpu-2", 11514, 0)]}
    three = pod(main=gpu(3, percent=10))
    assert placed(cluster, three) == {
        "main": [("hami-gpu-0", 2302, 0), ("hami-gpu-2", 2302, 0), ("hami-gpu-1", 8192, 0)]
    }


def test_an_init_container_costs_nothing_beside_a_larger_container() -> None:
    cluster = Cluster(**{NODE: gpus(10240)})
    first = pod(init={"warm": gpu(1, mem=8192)}, main=gpu(1, mem=10240))
    assert placed(cluster, first) == {
        "main": [("hami-gpu-0", 10240, 0)],
        "warm": [("hami-gpu-0", 10240, 0)],
    }


def test_a_larger_init_container_makes_the_pod_as_large_not_larger() -> None:
    cluster = Cluster(**{NODE: gpus(10240)})
    one = pod(init={"warm": gpu(1, mem=8192)}, a=gpu(1, mem=1024), b=gpu(1, mem=2048))
    given = placed(cluster, one)
    assert given is not None
    assert given["a"] == [("hami-gpu-0", 1024, 0)]
    assert given["b"] == [("hami-gpu-0", 7168, 0)]
    assert given["warm"] == given["b"] + given["a"]


def test_a_sidecar_adds() -> None:
    cluster = Cluster(**{NODE: gpus(10240)})
    one = pod(init={"proxy": sidecar(1, mem=1024)}, main=gpu(1, mem=10240))
    assert placed(cluster, one) is None


def test_an_init_container_over_two_containers_has_different_cards() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB, A10_MIB)})
    one = pod(init={"warm": gpu(2, mem=512)}, a=gpu(1, mem=1024), b=gpu(1, mem=1024))
    given = placed(cluster, one)
    assert given is not None
    assert [device for device, _, _ in given["warm"]] == ["hami-gpu-0", "hami-gpu-1"]


def test_mutex_takes_an_idle_card_and_keeps_it() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB, A10_MIB)})
    assert placed(cluster, pod(main=gpu(1, mem=1024))) == {"main": [("hami-gpu-0", 1024, 0)]}
    alone = pod(main=gpu(1, mem=1024), annotations={GPU_POLICY: "mutex"})
    assert placed(cluster, alone) == {"main": [("hami-gpu-1", A10_MIB, 0)]}
    assert placed(cluster, alone) is None
    for _ in range(2):
        given = placed(cluster, pod(main=gpu(1, mem=1024)))
        assert given == {"main": [("hami-gpu-0", 1024, 0)]}


def test_mutex_takes_no_card_that_is_too_small() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB, A100_MIB)})
    alone = pod(main=gpu(1, mem=40000), annotations={GPU_POLICY: "mutex"})
    assert placed(cluster, alone) == {"main": [("hami-gpu-1", A100_MIB, 0)]}


def test_spread_as_a_constraint_keeps_containers_apart() -> None:
    cluster = Cluster(one=gpus(A10_MIB), **{NODE: gpus(A10_MIB, A10_MIB)})
    apart = pod(a=gpu(1, mem=1), b=gpu(1, mem=1), annotations={GPU_POLICY: "spread"})
    assert placed(cluster, apart, "one") == {"a": [("hami-gpu-0", 1, 0)]} | {
        "b": [("hami-gpu-0", 1, 0)]
    }
    assert placed(cluster, apart, "one", policies_as_constraints=True) is None
    given = placed(cluster, apart, policies_as_constraints=True)
    assert given == {"a": [("hami-gpu-0", 1, 0)], "b": [("hami-gpu-1", 1, 0)]}


def test_topology_as_a_constraint_takes_cards_of_one_root() -> None:
    roots = ("pci0000:00", "pci0000:80", "pci0000:80")
    cluster = Cluster(**{NODE: gpus(A10_MIB, A10_MIB, A10_MIB, roots=roots)})
    near = pod(main=gpu(2), annotations={GPU_POLICY: "topology-aware"})
    given = placed(cluster, near, policies_as_constraints=True)
    assert given == {"main": [("hami-gpu-1", A10_MIB, 100), ("hami-gpu-2", A10_MIB, 100)]}


def test_types_match_in_part_and_whatever_the_case() -> None:
    cluster = Cluster(a10=gpus(A10_MIB), a100=gpus(A100_MIB, product="NVIDIA A100-SXM4-80GB"))
    for text, wanted in (
        ("A100", {"a100"}),
        ("a10", {"a10", "a100"}),
        ("NVIDIA", {"a10", "a100"}),
        ("sxm4, t4", {"a100"}),
        ("H200", set()),
    ):
        for annotation, nodes in ((TYPE, wanted), (NO_TYPE, {"a10", "a100"} - wanted)):
            one = pod(main=gpu(1, mem=1), annotations={annotation: text})
            found = {node for node in ("a10", "a100") if placed(cluster, one, node) is not None}
            assert found == nodes, (annotation, text)
            conversion = convert_pod(one, cluster.facts, ConversionSettings())
            assert any("is allowed by" in told for told in conversion.warnings) == (not nodes)


def test_types_match_as_hami_registers_them() -> None:
    cluster = Cluster(t4=gpus(T4_MIB, product="Tesla T4"), a40=gpus(A10_MIB, product="NVIDIA A40"))
    for text, wanted in (
        ("NVIDIA-Tesla T4", {"t4"}),
        ("nvidia-tesla", {"t4"}),
        ("NVIDIA-NVIDIA A40", {"a40"}),
        ("Tesla", {"t4"}),
        ("NVIDIA", {"t4", "a40"}),
        ("NVIDIA-A40", set()),
        (f"NVIDIA-{'x' * 64}", set()),
    ):
        for annotation, nodes in ((TYPE, wanted), (NO_TYPE, {"t4", "a40"} - wanted)):
            one = pod(main=gpu(1, mem=1), annotations={annotation: text})
            found = {node for node in ("t4", "a40") if placed(cluster, one, node) is not None}
            assert found == nodes, (annotation, text)
            conversion = convert_pod(one, cluster.facts, ConversionSettings())
            assert any("is allowed by" in told for told in conversion.warnings) == (not nodes)


def test_uuids_match_whole() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB, A10_MIB)})
    first, second = (card.uuid for card in cluster.facts.cards)
    for annotation, text, device in (
        (UUID, second, "hami-gpu-1"),
        (UUID, f"GPU-unknown, {second}", "hami-gpu-1"),
        (NO_UUID, first, "hami-gpu-1"),
        (NO_UUID, "GPU-unknown", "hami-gpu-0"),
        (UUID, second[:-1], None),
        (NO_UUID, f"{first},{second}", None),
    ):
        given = placed(cluster, pod(main=gpu(1, mem=1), annotations={annotation: text}))
        assert given == (None if device is None else {"main": [(device, 1, 0)]})


def test_text_of_an_annotation_stays_text() -> None:
    cluster = Cluster(**{NODE: gpus(A10_MIB)})
    for text in ('"]) || true', "\\", "x\\", "']", '"', "${a}", "卡", "\\u0041", "A10\\x00"):
        assert placed(cluster, pod(main=gpu(1, mem=1), annotations={UUID: text})) is None
        assert placed(cluster, pod(main=gpu(1, mem=1), annotations={TYPE: text})) is None
        assert placed(cluster, pod(main=gpu(1, mem=1), annotations={NO_TYPE: text})) is not None


def test_a_device_without_attributes_or_memory_fails_no_expression() -> None:
    """An error in an expression would stop the scheduling of the pod on all nodes."""
    bare = {"name": "a-bare", "attributes": {"type": {"string": "hami-gpu"}}}
    for annotations in (
        {UUID: "GPU-x"}, {TYPE: "A10"}, {NO_UUID: "GPU-x"}, {NO_TYPE: "T4"}, {GPU_POLICY: "mutex"},
    ):  # fmt: skip
        for asked in (gpu(1, percent=25), gpu(1, mem=1024)):
            cluster = Cluster(**{NODE: gpus(A10_MIB)})
            one = pod(main=asked, annotations=annotations)
            if annotations == {UUID: "GPU-x"} and asked == gpu(1, percent=25):
                continue
            conversion = convert_pod(one, cluster.facts, ConversionSettings())
            lonely = Cluster()
            lonely.with_device(odd_slice(NODE, bare))
            assert isinstance(lonely.place(conversion, NODE), Refused)
