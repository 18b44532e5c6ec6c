"""Cases of alternatives, adminAccess and taints."""

from tests.conformance.allocator.building import (
    UNIVERSE,
    claim,
    device,
    exactly,
    first_of,
    held,
    holder,
    slice_,
    sub,
)
from tests.conformance.allocator.case import Denied, Failed, given
from tests.conformance.allocator.forms import ATTRIBUTES, gpus, one, taint

_ALTERNATIVES = (
    one(
        "the first alternative that can be had",
        given("gpu/second=g2"),
        claims=[
            claim(
                first_of(
                    "gpu",
                    sub("first", cel=f"{ATTRIBUTES}.index > 5"),
                    sub("second", cel=f"{ATTRIBUTES}.index == 2"),
                    sub("third"),
                )
            )
        ],
    ),
    one(
        "no alternative can be had",
        Denied(),
        claims=[claim(first_of("gpu", sub("first", cel="false"), sub("second", count=9)))],
    ),
    one(
        "an alternative that leaves nothing for the next request is given up",
        given("gpu/one=g0", "rest=g1", "rest=g2"),
        claims=[claim(first_of("gpu", sub("two", count=2), sub("one")), exactly("rest", count=2))],
    ),
    one(
        "alternatives that are too many for a claim",
        given("gpu/few=g0", *(f"rest=g{index}" for index in range(1, 21))),
        slice_(*(device(f"g{index}") for index in range(50))),
        claims=[
            claim(
                first_of("gpu", sub("many", count=20), sub("few")),
                exactly("rest", count=20),
            )
        ],
    ),
    one(
        "a class of an alternative that does not exist",
        Failed(f"request gpu/second: device class {UNIVERSE}-nothing does not exist"),
        claims=[claim(first_of("gpu", sub("first"), sub("second", of=f"{UNIVERSE}-nothing")))],
    ),
    one(
        "all devices as an alternative",
        given("gpu/one=g0"),
        claims=[claim(first_of("gpu", sub("every", every=True), sub("one")))],
        holders=[holder("h", held("g1"))],
    ),
)


_ADMIN = (
    one(
        "adminAccess to a device in use",
        given("gpu=g0"),
        claims=[claim(exactly(admin=True))],
        holders=[holder("h", held("g0"))],
    ),
    one(
        "a device with adminAccess is free for others",
        given("gpu=g0"),
        holders=[holder("h", held("g0", admin=True))],
    ),
    one(
        "adminAccess to all devices",
        given("gpu=g0", "gpu=g1", "gpu=g2"),
        claims=[claim(exactly(every=True, admin=True))],
        holders=[holder("h", held("g1"))],
    ),
    one(
        "adminAccess does not give one claim a device twice",
        given("one=g0", "two=g1"),
        claims=[claim(exactly("one", admin=True), exactly("two", admin=True))],
    ),
    one(
        "adminAccess of two claims to one device",
        given("gpu=g0", "gpu=g0"),
        claims=[claim(exactly(admin=True)), claim(exactly(admin=True), name="d")],
    ),
    one(
        "a device seen with adminAccess in one pod is not given in it",
        given("see=g0", "use=g1"),
        claims=[claim(exactly("see", admin=True), exactly("use"))],
    ),
)


_TAINTS = (
    one(
        "a taint keeps claims away",
        given("gpu=g1"),
        slice_(*gpus("g0", taints=[taint()]), *gpus("g1")),
    ),
    one(
        "NoExecute keeps claims away",
        Denied(),
        slice_(*gpus("g0", taints=[taint("NoExecute")])),
    ),
    one("None keeps nobody away", given("gpu=g0"), slice_(*gpus("g0", taints=[taint("None")]))),
    *(
        one(
            f"a toleration: {name}",
            outcome,
            slice_(*gpus("g0", taints=[taint(value="x")])),
            claims=[claim(exactly(tolerate=[toleration]))],
        )
        for name, toleration, outcome in (
            ("of everything", {"operator": "Exists"}, given("gpu=g0")),
            ("of a key", {"key": "broken.example.com", "operator": "Exists"}, given("gpu=g0")),
            ("of another key", {"key": "other.example.com", "operator": "Exists"}, Denied()),
            (
                "of the value",
                {"key": "broken.example.com", "operator": "Equal", "value": "x"},
                given("gpu=g0"),
            ),
            (
                "of another value",
                {"key": "broken.example.com", "operator": "Equal", "value": "y"},
                Denied(),
            ),
            ("of another effect", {"operator": "Exists", "effect": "NoExecute"}, Denied()),
        )
    ),
    one(
        "every taint must be tolerated",
        Denied(),
        slice_(*gpus("g0", taints=[taint(), taint("NoExecute", "hot.example.com")])),
        claims=[claim(exactly(tolerate=[{"key": "broken.example.com", "operator": "Exists"}]))],
    ),
    one(
        "a tainted device is among all devices",
        Denied(),
        slice_(*gpus("g0", taints=[taint()]), *gpus("g1")),
        claims=[claim(exactly(every=True))],
    ),
)


CASES = (*_ALTERNATIVES, *_ADMIN, *_TAINTS)
