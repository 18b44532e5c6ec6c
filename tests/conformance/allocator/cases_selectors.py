"""Cases of selectors (CEL)."""

from tests.conformance.allocator.building import (
    DRIVER,
    GPU_CLASS,
    UNIVERSE,
    Version,
    claim,
    device,
    exactly,
    gpu_class,
    slice_,
)
from tests.conformance.allocator.case import Denied, Failed, given
from tests.conformance.allocator.forms import ATTRIBUTES, one

_SELECTORS = (
    one("a class that matches nothing", Denied(), classes=[gpu_class("false")]),
    one(
        "a selector of the request",
        given("gpu=g1"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.index == 1"))],
    ),
    one(
        "all selectors must match",
        given("gpu=g1"),
        claims=[claim(exactly(cel=(f"{ATTRIBUTES}.index > 0", f"{ATTRIBUTES}.index < 2")))],
    ),
    one(
        "a missing attribute is an error",
        Failed("selector #0: CEL runtime error: no such key: model"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.model == 'A10'"))],
    ),
    one(
        "a missing attribute in the class is an error of the class",
        Failed(f"class {GPU_CLASS}: selector #1: CEL runtime error: no such key: model"),
        classes=[gpu_class(f"{ATTRIBUTES}.model == 'A10'")],
    ),
    one(
        "a missing domain has no attributes",
        Failed("CEL runtime error: no such key: model"),
        claims=[claim(exactly(cel="device.attributes['nobody.example.com'].model == 'A10'"))],
    ),
    one(
        "a missing attribute that is looked for first",
        Denied(),
        claims=[claim(exactly(cel=f"'model' in {ATTRIBUTES} && {ATTRIBUTES}.model == 'A10'"))],
    ),
    one(
        "an optional attribute",
        given("gpu=g0"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.?model.orValue('none') == 'none'"))],
    ),
    one(
        "has() of an attribute",
        given("gpu=g0"),
        claims=[claim(exactly(cel=f"has({ATTRIBUTES}.index) && !has({ATTRIBUTES}.model)"))],
    ),
    one(
        "a number is not compared with a text",
        Failed("CEL runtime error: no such overload"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.index > 'a'"))],
    ),
    one(
        "an attribute that is not true or false",
        Failed("could not be converted to bool"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.index"))],
    ),
    one(
        "quantities",
        given("gpu=g1"),
        slice_(device("g0", {"memory": "8Gi"}), device("g1", {"memory": "16Gi"})),
        claims=[
            claim(
                exactly(cel=f"device.capacity['{DRIVER}'].memory.compareTo(quantity('10Gi')) >= 0")
            )
        ],
    ),
    one(
        "quantities that are added",
        given("gpu=g1"),
        slice_(device("g0", {"memory": "8Gi"}), device("g1", {"memory": "16Gi"})),
        claims=[
            claim(
                exactly(
                    cel=f"device.capacity['{DRIVER}'].memory"
                    ".sub(quantity('8Gi')).isGreaterThan(quantity('0'))"
                )
            )
        ],
    ),
    one(
        "quantities that are equal in other words",
        given("gpu=g0"),
        slice_(device("g0", {"memory": "8Gi"})),
        claims=[claim(exactly(cel=f"device.capacity['{DRIVER}'].memory == quantity('8192Mi')"))],
    ),
    one(
        "versions",
        given("gpu=g1"),
        slice_(
            device("g0", attributes={"release": Version("1.9.0")}),
            device("g1", attributes={"release": Version("1.10.0-rc.1")}),
        ),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.release.isGreaterThan(semver('1.9.5'))"))],
    ),
    one(
        "parts of versions",
        given("gpu=g1"),
        slice_(
            device("g0", attributes={"release": Version("1.9.0")}),
            device("g1", attributes={"release": Version("1.10.0-rc.1")}),
        ),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.release.minor() == 10"))],
    ),
    one(
        "texts and patterns",
        given("gpu=g1"),
        slice_(
            device("g0", attributes={"model": "Tesla-T4"}),
            device("g1", attributes={"model": "Tesla-A10"}),
        ),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.model.lowerAscii().matches('^.*a[0-9]+$')"))],
    ),
    one(
        "find",
        given("gpu=g1"),
        slice_(
            device("g0", attributes={"model": "Tesla-T4"}),
            device("g1", attributes={"model": "Tesla-A10"}),
        ),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.model.find('[0-9]+') == '10'"))],
    ),
    one(
        "cel.bind",
        given("gpu=g1"),
        claims=[claim(exactly(cel=f"cel.bind(own, {ATTRIBUTES}, own.index == 1)"))],
    ),
    one(
        "macros over attributes",
        given("gpu=g0"),
        claims=[claim(exactly(cel=f"{ATTRIBUTES}.exists(name, name == 'index')"))],
    ),
    one(
        "a domain that is looked for among all",
        Denied(),
        claims=[claim(exactly(cel="'nobody.example.com' in device.attributes"))],
    ),
    one(
        "a class that does not exist",
        Failed(f"request gpu: device class {UNIVERSE}-nothing does not exist"),
        claims=[claim(exactly(of=f"{UNIVERSE}-nothing"))],
    ),
)


CASES = _SELECTORS
