"""Cases of consumable capacity (KEP 5075)."""

from tests.conformance.allocator.building import (
    DRIVER,
    Json,
    amount,
    claim,
    device,
    exactly,
    gpu_class,
    held,
    holder,
    slice_,
)
from tests.conformance.allocator.case import Case, Denied, Outcome, given

MEMORY = amount("24Gi", "1Gi", min="1Gi", step="1Gi")
CORES = amount("100", "0", min="0", step="1")


def gpu(name: str = "g0", **capacity: Json | str) -> Json:
    """A shared device; with the capacity of a card unless another is given."""
    own: Json = dict(capacity) or {"memory": MEMORY, "cores": CORES}
    return device(name, own, shared=True, attributes={"index": int(name[-1])})


def one(
    name: str,
    outcome: Outcome,
    *devices: Json,
    claims: list[Json],
    holders: list[Json] | None = None,
) -> Case:
    """On one node with one slice."""
    return Case(
        name=name,
        slices=[slice_(*(devices or (gpu(),)))],
        classes=[gpu_class()],
        claims=claims,
        holders=holders or [],
        expected={"a": outcome},
    )


CASES = (
    one(
        "a share is taken as asked",
        given("gpu=g0 cores=50 memory=10Gi"),
        claims=[claim(exactly(memory="10Gi", cores="50"))],
    ),
    one(
        "what is not asked takes its default",
        given("gpu=g0 cores=0 memory=10Gi"),
        claims=[claim(exactly(memory="10Gi"))],
    ),
    one(
        "without any amount all defaults are taken",
        given("gpu=g0 cores=0 memory=1Gi"),
        claims=[claim(exactly())],
    ),
    one(
        "a capacity without a policy is taken whole when it is not asked for",
        given("gpu=g0 memory=24Gi"),
        gpu(memory="24Gi"),
        claims=[claim(exactly())],
    ),
    one(
        "a capacity without a policy takes any amount",
        given("gpu=g0 memory=1500m"),
        gpu(memory="24Gi"),
        claims=[claim(exactly(memory="1500m"))],
    ),
    one(
        "a capacity without a policy that is held in part blocks who asks for nothing",
        Denied(),
        gpu(memory="24Gi"),
        claims=[claim(exactly())],
        holders=[holder("h", held("g0", share=1, memory="1Gi"))],
    ),
    one(
        "a capacity that the device does not have rules it out",
        Denied(),
        claims=[claim(exactly(memory="1Gi", bandwidth="1"))],
    ),
    one(
        "keys of capacity are compared letter by letter",
        Denied(),
        claims=[claim(exactly(**{f"{DRIVER}/memory": "1Gi"}))],
    ),
    one(
        "less than the minimum becomes the minimum",
        given("gpu=g0 cores=0 memory=1Gi"),
        claims=[claim(exactly(memory="100Mi"))],
    ),
    one(
        "amounts are rounded up to the step",
        given("gpu=g0 cores=0 memory=3Gi"),
        claims=[claim(exactly(memory="2049Mi"))],
    ),
    one(
        "steps start at the minimum",
        given("gpu=g0 slots=7"),
        gpu(slots=amount("20", "3", min="3", step="4")),
        claims=[claim(exactly(slots="4"))],
    ),
    one(
        "rounded amounts are written in binary notation",
        given("gpu=g0 slots=2Ki"),
        gpu(slots=amount("100Ki", "1k", min="0", step="1")),
        claims=[claim(exactly(slots="2048"))],
    ),
    one(
        "without a step the notation of the request stays",
        given("gpu=g0 slots=2048"),
        gpu(slots=amount("100Ki", "1k", min="0")),
        claims=[claim(exactly(slots="2048"))],
    ),
    one(
        "the text of an amount stays where it is nearly canonical",
        given("gpu=g0 slots=84.125k"),
        gpu(slots="100k"),
        claims=[claim(exactly(slots="84.125k"))],
    ),
    one(
        "fractions are rounded up with a step",
        given("gpu=g0 cores=3"),
        gpu(cores=CORES),
        claims=[claim(exactly(cores="2500m"))],
    ),
    one(
        "more than the maximum rules the device out",
        Denied(),
        gpu(memory=amount("24Gi", "1Gi", min="1Gi", max="8Gi")),
        claims=[claim(exactly(memory="9Gi"))],
    ),
    one(
        "the maximum itself is fine",
        given("gpu=g0 memory=8Gi"),
        gpu(memory=amount("24Gi", "1Gi", min="1Gi", max="8Gi")),
        claims=[claim(exactly(memory="8Gi"))],
    ),
    one(
        "a valid value is taken as it is",
        given("gpu=g0 memory=4Gi"),
        gpu(memory=amount("24Gi", "4Gi", valid_values=["4Gi", "8Gi", "16Gi"])),
        claims=[claim(exactly(memory="4Gi"))],
    ),
    one(
        "amounts are rounded up to the next valid value",
        given("gpu=g0 memory=8Gi"),
        gpu(memory=amount("24Gi", "4Gi", valid_values=["4Gi", "8Gi", "16Gi"])),
        claims=[claim(exactly(memory="5Gi"))],
    ),
    one(
        "more than the last valid value rules the device out",
        Denied(),
        gpu(memory=amount("24Gi", "4Gi", valid_values=["4Gi", "8Gi", "16Gi"])),
        claims=[claim(exactly(memory="17Gi"))],
    ),
    one(
        "a policy with nothing but a default takes any amount",
        given("gpu=g0 memory=5Gi"),
        gpu(memory=amount("24Gi", "2Gi")),
        claims=[claim(exactly(memory="5Gi"))],
    ),
    one(
        "a capacity that nobody uses up lets everybody in",
        given("gpu=g0 memory=24Gi total=0"),
        gpu(memory=MEMORY, total=amount("24Gi", "0", valid_values=["0"])),
        claims=[claim(exactly(memory="24Gi"))],
    ),
    one(
        "a capacity that nobody uses up can't be asked for",
        Denied(),
        gpu(memory=MEMORY, total=amount("24Gi", "0", valid_values=["0"])),
        claims=[claim(exactly(memory="24Gi", total="1"))],
    ),
    one(
        "the last bit of a device can be had",
        given("gpu=g0 cores=0 memory=4Gi"),
        claims=[claim(exactly(memory="4Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="100"))],
    ),
    one(
        "a bit more than is left can't be had",
        Denied(),
        claims=[claim(exactly(memory="5Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="10"))],
    ),
    one(
        "every capacity must have room, also one that is not asked for",
        Denied(),
        gpu(memory=MEMORY, cores=amount("100", "10", min="0", step="1")),
        claims=[claim(exactly(memory="1Gi"))],
        holders=[holder("h", held("g0", share=1, memory="1Gi", cores="95"))],
    ),
    one(
        "shares of several claims add up",
        Denied(),
        claims=[claim(exactly(memory="5Gi"))],
        holders=[
            holder("h1", held("g0", share=1, memory="10Gi", cores="10")),
            holder("h2", held("g0", share=2, memory="10Gi", cores="10")),
        ],
    ),
    one(
        "shares with adminAccess hold nothing",
        given("gpu=g0 cores=0 memory=24Gi"),
        claims=[claim(exactly(memory="24Gi"))],
        holders=[holder("h", held("g0", share=1, admin=True, memory="10Gi", cores="10"))],
    ),
    one(
        "a share without an id holds the whole device",
        Denied(),
        claims=[claim(exactly(memory="1Gi"))],
        holders=[holder("h", held("g0"))],
    ),
    one(
        "adminAccess needs room on a shared device",
        Denied(),
        claims=[claim(exactly(admin=True, memory="5Gi"))],
        holders=[holder("h", held("g0", share=1, memory="20Gi", cores="10"))],
    ),
    one(
        "adminAccess gets a share",
        given("gpu=g0 cores=0 memory=5Gi"),
        claims=[claim(exactly(admin=True, memory="5Gi"))],
    ),
)
