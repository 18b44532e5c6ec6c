"""Cases of which devices are taken first, and from which pools."""

from tests.conformance.allocator.building import (
    DRIVER,
    GPU_CLASS,
    NIC_CLASS,
    OTHER_DRIVER,
    claim,
    class_,
    device,
    exactly,
    held,
    holder,
    node_name,
    slice_,
)
from tests.conformance.allocator.case import Denied, Failed, given
from tests.conformance.allocator.forms import ATTRIBUTES, gpus, one, part

_ORDER = (
    one("the first device is taken", given("gpu=g0")),
    one(
        "two devices are the first two", given("gpu=g0", "gpu=g1"), claims=[claim(exactly(count=2))]
    ),
    one("devices in use are passed over", given("gpu=g1"), holders=[holder("h", held("g0"))]),
    one(
        "devices of other pools in use do not matter",
        given("gpu=g0"),
        holders=[holder("h", held("g0", pool="other"))],
    ),
    one("more devices than there are", Denied(), claims=[claim(exactly(count=4))]),
    one(
        "devices are tried as they are listed, not by name",
        given("gpu=g2"),
        slice_(*gpus("g2", "g0", "g1")),
    ),
    one(
        "slices of a pool are tried by name",
        given("gpu=g0"),
        slice_(*gpus("g1"), name="z", count=2),
        slice_(*gpus("g0"), name="b", count=2),
    ),
    one(
        "pools are tried by name",
        given("gpu=g1"),
        slice_(*gpus("g0"), name="a", pool="z"),
        slice_(*gpus("g1"), name="z", pool="b"),
    ),
    one(
        "drivers are tried by name, before pools",
        given("any=g0"),
        slice_(*gpus("n0"), name="a", pool="a", driver=OTHER_DRIVER),
        slice_(*gpus("g0"), name="z", pool="z"),
        classes=[class_(GPU_CLASS, f"device.driver in ['{DRIVER}', '{OTHER_DRIVER}']")],
        claims=[claim(exactly("any"))],
    ),
    one(
        "pools with binding conditions come last",
        given("gpu=g1"),
        slice_(
            device(
                "g0",
                bindingConditions=["ready.example.com"],
                bindingFailureConditions=["failed.example.com"],
            ),
            name="a",
            pool="a",
        ),
        slice_(*gpus("g1"), name="b", pool="b"),
    ),
    one(
        "two claims of a pod get different devices",
        given("gpu=g0", "gpu=g1"),
        claims=[claim(exactly()), claim(exactly(), name="d")],
    ),
    one(
        "devices of two drivers in one claim",
        given("nic=n0", "gpu=g0"),
        slice_(*gpus("g0"), name="a"),
        slice_(*gpus("n0"), name="b", driver=OTHER_DRIVER),
        claims=[claim(exactly("nic", NIC_CLASS), exactly())],
    ),
    one(
        "the way back over two requests",
        given("one=g1", "two=g0"),
        claims=[claim(exactly("one"), exactly("two", cel=f"{ATTRIBUTES}.index == 0"))],
    ),
    one(
        "the way back over two claims",
        given("gpu=g1", "gpu=g0"),
        claims=[
            claim(exactly()),
            claim(exactly(cel=f"{ATTRIBUTES}.index == 0"), name="d"),
        ],
    ),
    one(
        "all devices",
        given("gpu=g0", "gpu=g1", "gpu=g2"),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "all devices of a kind",
        given("gpu=g1", "gpu=g2"),
        claims=[claim(exactly(every=True, cel=f"{ATTRIBUTES}.index > 0"))],
    ),
    one(
        "all devices when one is in use",
        Denied(),
        claims=[claim(exactly(every=True))],
        holders=[holder("h", held("g1"))],
    ),
    one(
        "all devices when there is none",
        Denied(),
        claims=[claim(exactly(every=True, cel=f"{ATTRIBUTES}.index > 7"))],
    ),
    one(
        "all devices of all pools",
        given("gpu=g0", "gpu=g1"),
        slice_(*gpus("g0"), name="a", pool="a"),
        slice_(*gpus("g1"), name="b", pool="b"),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "all devices are more than a claim can hold",
        Failed("number of requested devices 33 exceeds the claim limit of 32"),
        slice_(*(device(f"g{index}") for index in range(33))),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "requests together are more than a claim can hold",
        Failed("number of requested devices 40 exceeds the claim limit of 32"),
        slice_(*(device(f"g{index}") for index in range(50))),
        claims=[claim(exactly("one", count=20), exactly("two", count=20))],
    ),
    one(
        "as many devices as a claim can hold",
        given(*(f"gpu=g{index}" for index in range(32))),
        slice_(*(device(f"g{index}") for index in range(40))),
        claims=[claim(exactly(count=32))],
    ),
)


_POOLS = (
    one("no slices", Denied(), slice_(*gpus("g0"), on="b")),
    one(
        "only the newest generation counts",
        given("gpu=g1"),
        slice_(*gpus("g0"), name="a", generation=1),
        slice_(*gpus("g1"), name="b", generation=2),
    ),
    one(
        "an incomplete pool is passed over",
        given("gpu=g1"),
        slice_(*gpus("g0"), name="a", pool="a", count=2),
        slice_(*gpus("g1"), name="b", pool="b"),
    ),
    one(
        "nothing but an incomplete pool",
        Denied(),
        slice_(*gpus("g0"), count=2),
    ),
    one(
        "all devices and an incomplete pool",
        Failed(
            f"asks for all devices, but resource pool {DRIVER}/{node_name('a')} "
            "is currently being updated"
        ),
        slice_(*gpus("g0"), count=2),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "all devices and an incomplete pool of another driver",
        Failed("is currently being updated"),
        slice_(*gpus("g0"), name="a"),
        slice_(*gpus("n0"), name="b", driver=OTHER_DRIVER, count=2),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "an invalid pool is passed over",
        given("gpu=g1"),
        slice_(*gpus("g0"), name="a", pool="a", count=2),
        slice_(*gpus("g0"), name="b", pool="a", count=2),
        slice_(*gpus("g1"), name="c", pool="b"),
    ),
    one(
        "nothing but an invalid pool",
        Denied("invalid resource pools were encountered"),
        slice_(*gpus("g0"), name="a", count=2),
        slice_(*gpus("g0"), name="b", count=2),
    ),
    one(
        "all devices and an invalid pool",
        Failed("is currently invalid"),
        slice_(*gpus("g0"), name="a", count=2),
        slice_(*gpus("g0"), name="b", count=2),
        claims=[claim(exactly(every=True))],
    ),
    one(
        "counters that no counter set has make a pool invalid",
        Denied("invalid resource pools were encountered"),
        slice_(part("g0", "1")),
    ),
    one(
        "slices on other nodes complete a pool",
        given("gpu=g0"),
        slice_(*gpus("g0"), name="a", count=2),
        slice_(*gpus("g1"), name="b", on="b", count=2),
    ),
    one(
        "a newer generation on other nodes makes a pool obsolete",
        Denied(),
        slice_(*gpus("g0"), name="a", count=2),
        slice_(*gpus("g1"), name="b", on="b", generation=2, count=2),
    ),
)


CASES = (*_ORDER, *_POOLS)
