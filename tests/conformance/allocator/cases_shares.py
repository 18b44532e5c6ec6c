"""Cases of several devices, requests and claims with consumable capacity (KEP 5075)."""

from tests.conformance.allocator.building import (
    DRIVER,
    amount,
    claim,
    counters,
    device,
    distinct,
    exactly,
    first_of,
    gpu_class,
    held,
    holder,
    match,
    slice_,
    sub,
    uses,
)
from tests.conformance.allocator.case import Case, Denied, Failed, given
from tests.conformance.allocator.cases_capacity import MEMORY, gpu, one

CASES = (
    one(
        "the first device is filled first",
        given("gpu=g0 cores=0 memory=4Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly(memory="4Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="10"))],
    ),
    one(
        "the next device is taken when the first is full",
        given("gpu=g1 cores=0 memory=5Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly(memory="5Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="10"))],
    ),
    one(
        "two requests may share a device",
        given("one=g0 cores=0 memory=10Gi", "two=g0 cores=0 memory=14Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly("one", memory="10Gi"), exactly("two", memory="14Gi"))],
    ),
    one(
        "two requests that do not fit on one device get two",
        given("one=g0 cores=0 memory=10Gi", "two=g1 cores=0 memory=15Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly("one", memory="10Gi"), exactly("two", memory="15Gi"))],
    ),
    one(
        "one request never gets a device twice",
        given("gpu=g0 cores=0 memory=1Gi", "gpu=g1 cores=0 memory=1Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly(count=2, memory="1Gi"))],
    ),
    one(
        "one request for two shares of a single device is refused",
        Denied(),
        claims=[claim(exactly(count=2, memory="1Gi"))],
    ),
    one(
        "claims of one pod share a device",
        given("gpu=g0 cores=0 memory=20Gi", "gpu=g0 cores=0 memory=4Gi"),
        claims=[claim(exactly(memory="20Gi")), claim(exactly(memory="4Gi"), name="d")],
    ),
    one(
        "claims of one pod that do not fit together are refused together",
        Denied(),
        claims=[claim(exactly(memory="20Gi")), claim(exactly(memory="5Gi"), name="d")],
    ),
    one(
        "the way back: a request gives its device to the next",
        given("one=g0 memory=4Gi", "two=g1 memory=4Gi"),
        gpu("g0", memory=MEMORY),
        gpu("g1", memory=MEMORY),
        claims=[
            claim(
                exactly("one", memory="4Gi"),
                exactly("two", memory="4Gi", cel=f"device.attributes['{DRIVER}'].index == 1"),
                constraints=[distinct("index")],
            )
        ],
    ),
    one(
        "the way back over a shared device",
        given("one=g1 memory=20Gi", "two=g0 memory=20Gi"),
        gpu("g0", memory=MEMORY),
        gpu("g1", memory=MEMORY),
        claims=[
            claim(
                exactly("one", memory="20Gi"),
                exactly("two", memory="20Gi", cel=f"device.attributes['{DRIVER}'].index == 0"),
            )
        ],
    ),
    one(
        "distinctAttribute keeps shares apart",
        given("one=g0 memory=1Gi", "two=g1 memory=1Gi"),
        gpu("g0", memory=MEMORY),
        gpu("g1", memory=MEMORY),
        claims=[
            claim(
                exactly("one", memory="1Gi"),
                exactly("two", memory="1Gi"),
                constraints=[distinct("index")],
            )
        ],
    ),
    one(
        "distinctAttribute with one device is refused",
        Denied(),
        gpu("g0", memory=MEMORY),
        claims=[
            claim(
                exactly("one", memory="1Gi"),
                exactly("two", memory="1Gi"),
                constraints=[distinct("index")],
            )
        ],
    ),
    one(
        "matchAttribute brings shares together",
        given("one=g1 memory=10Gi", "two=g1 memory=10Gi"),
        gpu("g0", memory=MEMORY),
        gpu("g1", memory=MEMORY),
        claims=[
            claim(
                exactly("one", memory="10Gi"),
                exactly("two", memory="10Gi"),
                constraints=[match("index")],
            )
        ],
        holders=[holder("h", held("g0", share=1, memory="10Gi"))],
    ),
    one(
        "a smaller alternative is taken when the larger does not fit",
        given("gpu/small=g0 cores=0 memory=2Gi"),
        claims=[claim(first_of("gpu", sub("large", memory="20Gi"), sub("small", memory="2Gi")))],
        holders=[holder("h", held("g0", share=1, memory="10Gi", cores="1"))],
    ),
    one(
        "all shared devices are one share of each",
        given("gpu=g0 cores=0 memory=2Gi", "gpu=g1 cores=0 memory=2Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly(every=True, memory="2Gi"))],
    ),
    one(
        "devices without room are not among all devices",
        given("gpu=g1 cores=0 memory=5Gi"),
        gpu("g0"),
        gpu("g1"),
        claims=[claim(exactly(every=True, memory="5Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="1"))],
    ),
    one(
        "all devices without room for any are refused",
        Denied(),
        claims=[claim(exactly(every=True, memory="25Gi"))],
    ),
    one(
        "all devices twice in one pod need room for both",
        Denied(),
        claims=[
            claim(
                exactly("one", every=True, memory="13Gi"), exactly("two", every=True, memory="13Gi")
            )
        ],
    ),
    one(
        "all devices without the capacity that is asked for are none",
        Denied(),
        claims=[claim(exactly(every=True, bandwidth="1"))],
    ),
    one(
        "all devices where one breaks its policy leave that one out",
        given("gpu=g1 memory=9Gi"),
        gpu("g0", memory=amount("24Gi", "1Gi", min="1Gi", max="8Gi")),
        gpu("g1", memory=MEMORY),
        claims=[claim(exactly(every=True, memory="9Gi"))],
    ),
    one(
        "all devices where a whole one is in use are refused",
        Denied(),
        gpu("g0", memory=MEMORY),
        device("g1", {"memory": "24Gi"}),
        claims=[claim(exactly(every=True, memory="1Gi"))],
        holders=[holder("h", held("g1"))],
    ),
    one(
        "all devices, shared and whole",
        given("gpu=g0 memory=1Gi", "gpu=g1"),
        gpu("g0", memory=MEMORY),
        device("g1", {"memory": "24Gi"}),
        claims=[claim(exactly(every=True, memory="1Gi"))],
    ),
    one(
        "a whole device must be large enough, and no amount is written",
        given("gpu=g1"),
        device("g0", {"memory": "8Gi"}),
        device("g1", {"memory": "16Gi"}),
        claims=[claim(exactly(memory="10Gi"))],
    ),
    one(
        "a whole device is not divided",
        Denied(),
        device("g0", {"memory": "16Gi"}),
        claims=[claim(exactly("one", memory="4Gi"), exactly("two", memory="4Gi"))],
    ),
    one(
        "whole and shared devices serve one class in their order",
        given("one=g0", "two=g1 memory=4Gi"),
        device("g0", {"memory": "16Gi"}),
        gpu("g1", memory=MEMORY),
        claims=[claim(exactly("one", memory="4Gi"), exactly("two", memory="4Gi"))],
    ),
    one(
        "a class may ask for shared devices only",
        given("gpu=g1 memory=4Gi"),
        device("g0", {"memory": "16Gi"}),
        gpu("g1", memory=MEMORY),
        claims=[claim(exactly(cel="device.allowMultipleAllocations", memory="4Gi"))],
    ),
    one(
        "a shared device without capacity is shared by all",
        given("gpu=g0"),
        device("g0", shared=True),
        claims=[claim(exactly())],
        holders=[holder("h", held("g0", share=1))],
    ),
    one(
        "more devices than a claim can hold are an error",
        Failed("number of requested devices 33 exceeds the claim limit of 32"),
        claims=[claim(exactly(count=33))],
    ),
    one(
        "capacity that shrank below what is held gives nothing",
        Denied(),
        gpu(memory=amount("8Gi", "1Gi", min="1Gi", step="1Gi")),
        claims=[claim(exactly())],
        holders=[holder("h", held("g0", share=1, memory="20Gi"))],
    ),
    one(
        "what is held of a capacity that is gone counts for nothing",
        given("gpu=g0 memory=24Gi"),
        gpu(memory=MEMORY),
        claims=[claim(exactly(memory="24Gi"))],
        holders=[holder("h", held("g0", share=1, slots="20"))],
    ),
    Case(
        name="the first share of a device takes its counters and the next one does not",
        slices=[
            slice_(
                name="0-counters",
                count=2,
                sharedCounters=[{"name": "card", "counters": counters(parts="2")}],
            ),
            slice_(
                device(
                    "g0", {"memory": MEMORY}, shared=True, consumesCounters=uses("card", parts="2")
                ),
                device("g1", {"memory": "24Gi"}, consumesCounters=uses("card", parts="1")),
                name="1-devices",
                count=2,
            ),
        ],
        classes=[gpu_class()],
        claims=[claim(exactly("one", memory="4Gi"), exactly("two", memory="4Gi"))],
        expected={"a": given("one=g0 memory=4Gi", "two=g0 memory=4Gi")},
    ),
    Case(
        name="a partition that overlaps with a shared one is not given",
        slices=[
            slice_(
                name="0-counters",
                count=2,
                sharedCounters=[{"name": "card", "counters": counters(parts="2")}],
            ),
            slice_(
                device(
                    "g0", {"memory": MEMORY}, shared=True, consumesCounters=uses("card", parts="2")
                ),
                device("g1", consumesCounters=uses("card", parts="1")),
                name="1-devices",
                count=2,
            ),
        ],
        classes=[gpu_class()],
        claims=[claim(exactly(cel="!device.allowMultipleAllocations"))],
        holders=[holder("h", held("g0", share=1, memory="4Gi"))],
        expected={"a": Denied()},
    ),
)
