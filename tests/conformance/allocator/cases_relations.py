"""Cases of constraints, counters and configuration."""

from tests.conformance.allocator.building import (
    NIC_CLASS,
    OTHER_DRIVER,
    UNIVERSE,
    ZONE_LABEL,
    claim,
    counters,
    device,
    distinct,
    exactly,
    first_of,
    gpu_class,
    held,
    holder,
    label,
    match,
    nic_class,
    opaque,
    slice_,
    sub,
    uses,
    where,
)
from tests.conformance.allocator.case import Denied, Failed, given
from tests.conformance.allocator.forms import ATTRIBUTES, gpus, linked, one, part, partitions

_CONSTRAINTS = (
    one(
        "matchAttribute",
        given("gpu=g1", "gpu=g2"),
        linked(g0=0, g1=1, g2=1),
        claims=[claim(exactly(count=2), constraints=[match("numa")])],
    ),
    one(
        "matchAttribute over requests",
        given("one=g1", "two=g2"),
        linked(g0=0, g1=1, g2=1),
        claims=[claim(exactly("one"), exactly("two"), constraints=[match("numa")])],
    ),
    one(
        "matchAttribute of some requests",
        given("one=g0", "two=g1", "three=g2"),
        linked(g0=0, g1=1, g2=1),
        claims=[
            claim(
                exactly("one"),
                exactly("two"),
                exactly("three"),
                constraints=[match("numa", "two", "three")],
            )
        ],
    ),
    one(
        "matchAttribute that nobody has",
        Denied(),
        claims=[claim(exactly(count=2), constraints=[match("numa")])],
    ),
    one(
        "matchAttribute of different values",
        Denied(),
        linked(g0=0, g1=1),
        claims=[claim(exactly(count=2), constraints=[match("numa")])],
    ),
    one(
        "matchAttribute of different types",
        Denied(),
        slice_(device("g0", attributes={"numa": 1}), device("g1", attributes={"numa": "1"})),
        claims=[claim(exactly(count=2), constraints=[match("numa")])],
    ),
    one(
        "matchAttribute over drivers, by its full name",
        given("gpu=g1", "nic=n0"),
        slice_(
            device("g0", attributes={"example.com/root": "r0"}),
            device("g1", attributes={"example.com/root": "r1"}),
            name="a",
        ),
        slice_(device("n0", attributes={"example.com/root": "r1"}), name="b", driver=OTHER_DRIVER),
        claims=[
            claim(
                exactly(),
                exactly("nic", NIC_CLASS),
                constraints=[match("example.com/root")],
            )
        ],
    ),
    one(
        "matchAttribute of another driver's domain",
        Denied(),
        claims=[claim(exactly(), constraints=[match(f"{OTHER_DRIVER}/index")])],
    ),
    one(
        "matchAttribute of an alternative",
        given("one/a=g1", "two=g2"),
        linked(g0=0, g1=1, g2=1),
        claims=[
            claim(
                first_of("one", sub("a"), sub("b")),
                exactly("two"),
                constraints=[match("numa", "one/a", "two")],
            )
        ],
    ),
    one(
        "all devices that a constraint forbids are an error",
        Failed("because a claim constraint would not be satisfied"),
        linked(g0=0, g1=1),
        claims=[claim(exactly(every=True), constraints=[match("numa")])],
    ),
    one(
        "distinctAttribute over requests",
        given("one=g0", "two=g2"),
        linked(g0=0, g1=0, g2=1),
        claims=[claim(exactly("one"), exactly("two"), constraints=[distinct("numa")])],
    ),
    one(
        "distinctAttribute inside a request",
        given("gpu=g0", "gpu=g2"),
        linked(g0=0, g1=0, g2=1),
        claims=[claim(exactly(count=2), constraints=[distinct("numa")])],
    ),
    one(
        "distinctAttribute remembers the last device of a request",
        given("gpu=g0", "gpu=g1", "gpu=g2"),
        linked(g0=0, g1=1, g2=0),
        claims=[claim(exactly(count=3), constraints=[distinct("numa")])],
    ),
    one(
        "distinctAttribute that can't be had",
        Denied(),
        linked(g0=0, g1=0),
        claims=[claim(exactly("one"), exactly("two"), constraints=[distinct("numa")])],
    ),
    one(
        "distinctAttribute that nobody has",
        Denied(),
        claims=[claim(exactly(), constraints=[distinct("numa")])],
    ),
    one(
        "two constraints",
        given("one=g0", "two=g2"),
        slice_(
            device("g0", attributes={"numa": 0, "model": "x"}),
            device("g1", attributes={"numa": 0, "model": "y"}),
            device("g2", attributes={"numa": 1, "model": "x"}),
        ),
        claims=[
            claim(
                exactly("one"),
                exactly("two"),
                constraints=[match("model"), distinct("numa")],
            )
        ],
    ),
)


_COUNTERS = (
    one(
        "partitions until the card is used up",
        given("one=p0", "two=p1"),
        *partitions(part("p0", "2"), part("p1", "2"), part("p2", "2")),
        claims=[claim(exactly("one"), exactly("two"))],
    ),
    one(
        "one partition too many",
        Denied(),
        *partitions(part("p0", "2"), part("p1", "2"), part("p2", "2")),
        claims=[claim(exactly(count=3))],
    ),
    one(
        "a smaller partition beside one in use",
        given("gpu=p2"),
        *partitions(part("p0", "3"), part("p1", "2"), part("p2", "1")),
        holders=[holder("h", held("p0"))],
    ),
    one(
        "the whole card beside a partition in use",
        Denied(),
        *partitions(part("p0", "4"), part("p1", "1")),
        claims=[claim(exactly(cel="device.driver != ''", count=1))],
        holders=[holder("h", held("p1"))],
    ),
    one(
        "the way back over partitions",
        given("one=p1", "two=p0"),
        *partitions(
            device("p0", attributes={"big": True}, consumesCounters=uses("card", parts="3")),
            device("p1", attributes={"big": False}, consumesCounters=uses("card", parts="1")),
        ),
        claims=[claim(exactly("one"), exactly("two", cel=f"{ATTRIBUTES}.big"))],
    ),
    one(
        "partitions in use on other nodes count",
        Denied(),
        slice_(
            name="0-counters",
            count=3,
            on=None,
            nodeSelector=where(label(ZONE_LABEL, "In", UNIVERSE)),
            sharedCounters=[{"name": "card", "counters": counters(parts="4")}],
        ),
        slice_(part("p0", "3"), name="1", count=3),
        slice_(part("p1", "3"), name="2", on="b", count=3),
        holders=[holder("h", held("p1"))],
    ),
    one(
        "adminAccess takes counters too",
        Denied(),
        *partitions(part("p0", "3"), part("p1", "3")),
        claims=[claim(exactly(admin=True))],
        holders=[holder("h", held("p0"))],
    ),
)


_CONFIG = (
    one(
        "configuration of the class comes first",
        given("gpu=g0", config=("FromClass gpu a=1", "FromClaim  b=2")),
        classes=[gpu_class(config=[opaque(a=1)])],
        claims=[claim(exactly(), config=[opaque(b=2)])],
    ),
    one(
        "configuration of a class once for several requests",
        given("one=g0", "two=g1", config=("FromClass one,two a=1",)),
        classes=[gpu_class(config=[opaque(a=1)])],
        claims=[claim(exactly("one"), exactly("two"))],
    ),
    one(
        "configuration of a claim once for each request that it names",
        given(
            "one=g0",
            "two=g1",
            "three=g2",
            config=("FromClaim one,three b=2", "FromClaim one,three b=2"),
        ),
        claims=[
            claim(
                exactly("one"),
                exactly("two"),
                exactly("three"),
                config=[{"requests": ["one", "three"], **opaque(b=2)}],
            )
        ],
    ),
    one(
        "configuration of the alternative that was chosen",
        given("gpu/b=g0", config=("FromClaim gpu/b b=2", "FromClaim gpu c=3")),
        claims=[
            claim(
                first_of("gpu", sub("a", cel="false"), sub("b")),
                config=[
                    {"requests": ["gpu/a"], **opaque(a=1)},
                    {"requests": ["gpu/b"], **opaque(b=2)},
                    {"requests": ["gpu"], **opaque(c=3)},
                ],
            )
        ],
    ),
    one(
        "configuration of the class of the alternative that was chosen",
        given("gpu/b=n0", config=("FromClass gpu/b n=1",)),
        slice_(*gpus("n0"), driver=OTHER_DRIVER),
        classes=[gpu_class(config=[opaque(g=1)]), nic_class(config=[opaque(OTHER_DRIVER, n=1)])],
        claims=[claim(first_of("gpu", sub("a"), sub("b", NIC_CLASS)))],
    ),
)


CASES = (*_CONSTRAINTS, *_COUNTERS, *_CONFIG)
