"""Selectors of devices say what Kubernetes says, or that they can't tell."""

import pytest

from casaba.policy.cel import (
    CelCompileError,
    CelRuntimeError,
    CelTooComplex,
    CelUnsupported,
    check_selector,
    compiled_selector,
)
from casaba.wire.kubernetes import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
OWN = f"device.attributes['{DRIVER}']"
CARD = Device(
    name="card-0",
    attributes={
        "index": DeviceAttribute(int_=5),
        "model": DeviceAttribute(string="Tesla-A10"),
        "ecc": DeviceAttribute(bool_=True),
        "other.example.com/release": DeviceAttribute(version="1.2.3"),
    },
    capacity={"memory": DeviceCapacity(value="10Gi")},
    allow_multiple_allocations=True,
)


@pytest.mark.parametrize(
    "expression",
    [
        f"device.driver == '{DRIVER}'",
        "device.allowMultipleAllocations",
        f"{OWN}.ecc",
        f"{OWN}.index == 5 && {OWN}.index > 4 && {OWN}.index != 6",
        f"device.capacity['{DRIVER}'].memory.compareTo(quantity('4Gi')) > 0",
        f"device.capacity['{DRIVER}'].memory == quantity('10240Mi')",
        f"device.capacity['{DRIVER}'].memory.isLessThan(quantity('11Gi'))",
        f"device.capacity['{DRIVER}'].memory.sub(quantity('10Gi')).sign() == 0",
        "quantity('1').add(5).asInteger() == 6",
        "quantity('1500m').asApproximateFloat() == 1.5",
        "!quantity('1500m').isInteger() && isQuantity('1Gi') && !isQuantity('1Gb')",
        "device.attributes['other.example.com'].release.isGreaterThan(semver('1.0.0'))",
        "device.attributes['other.example.com'].release == semver('1.2.3+build')",
        "semver('v01.5', true).compareTo(semver('1.5.0')) == 0",
        "isSemver('1.0.0') && !isSemver('1.0') && isSemver('1.0', true)",
        "semver('3.2.1').major() == 3 && semver('3.2.1').patch() == 1",
        f"{OWN}.model.lowerAscii().matches('^tesla-a[0-9]+$')",
        f"{OWN}.model.find('[0-9]+') == '10'",
        f"{OWN}.model.findAll('[AT]', 1) == ['T']",
        f"{OWN}.model.split('-')[0] == 'Tesla' && {OWN}.model.substring(0, 1) == 'T'",
        f"{OWN}.?missing.orValue(1) == 1",
        f"!has({OWN}.missing) && has({OWN}.index)",
        f"'index' in {OWN} && !('missing' in {OWN})",
        f"cel.bind(own, {OWN}, own.index == 5 && own.ecc)",
        f"{OWN}.all(name, name.size() > 2)",
        "device.attributes.exists(domain, domain == 'other.example.com')",
        "!('nobody.example.com' in device.attributes)",
        "[3, 1].sum() == 4 && [1, 2].isSorted() && [3, 1].max() == 3",
        "[1.5, 2.5].sum() == 4.0 && ['b', 'a'].min() == 'a' && [].sum() == 0",
        f"[{OWN}.index, 4].max() == 5",
        "has(device.driver) && has(device.attributes) && has( device . capacity )",
        f"has(device.driver) && {OWN}.model != 'has(device.driver)'",
        "sets.contains([1, 2, 3], [2]) && !sets.intersects([1], [2])",
        f"'nobody.example.com' in device.attributes || {OWN}.ecc",
    ],
)
def test_a_selector_that_matches(expression: str) -> None:
    check_selector(expression)
    assert compiled_selector(expression).matches(DRIVER, CARD)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f"{OWN}.missing == 1", "no such key: missing"),
        ("device.attributes['nobody.example.com'].x == 1", "no such key: x"),
        (f"{OWN}.index > 'a'", "no such overload"),
        (f"{OWN}.index.compareTo(quantity('1')) == 0", "no such overload"),
        (f"{OWN}.index", "CEL result of type int could not be converted to bool"),
        (f"{OWN}.index / 0 == 1", "division by zero"),
        ("quantity('10 Gi').sign() == 1", "quantities must match the regular expression"),
        ("quantity('1.5').asInteger() == 1", "cannot convert value to integer"),
        (f"[{OWN}.index, {OWN}.model].sum() == 1", "no such overload"),
        ("[duration('1s')].sum() == duration('1s')", "not supported here"),
    ],
)
def test_a_selector_that_fails(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError, match=words):
        compiled_selector(expression).matches(DRIVER, CARD)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "device.driver ==",
            "compilation failed: ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>'",
        ),
        ("device.maker == 'x'", "ERROR: <input>:1:7: undefined field 'maker'"),
        ("devices.driver == 'x'", "undeclared reference to 'devices' .in container ''."),
        ("device.driver == 1", "found no matching overload for '_==_' applied to '.string, int.'"),
        (
            "quantity('1') > quantity('2')",
            "found no matching overload for '_>_' applied to "
            "'.kubernetes.Quantity, kubernetes.Quantity.'",
        ),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("has(device.maker)", "ERROR: <input>:1:4: undefined field 'maker'"),
        ("['a'].sum() == 'a'", "found no matching overload for 'sum'"),
        ("[[1]].max() == [1]", "found no matching overload for 'max'"),
        ("device.driver == 'x' &&\n  true2", "<input>:2:3: undeclared reference to 'true2'"),
    ],
)
def test_a_selector_that_is_wrong(expression: str, words: str) -> None:
    with pytest.raises(CelCompileError, match=words):
        check_selector(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "ip('10.0.0.1').family() == 4",
        "url('https://example.com').getHost() == 'x'",
        "device == device",
        "device.attributes[device.driver].index == 5",
        "[1, 2].indexOf(2) == 1",
        "(" * 60 + "true" + ")" * 60,
        "+".join(["1"] * 60) + " == 60",
    ],
)
def test_what_is_not_evaluated_here_is_told(expression: str) -> None:
    with pytest.raises(CelUnsupported, match="supported"):
        compiled_selector(expression)


def test_a_missing_domain_that_can_not_be_told_from_an_empty_one_is_told() -> None:
    expression = "device.attributes.size() > 0 && device.attributes['nobody.example.com'].x == 1"
    with pytest.raises(CelRuntimeError, match=r"domain nobody\.example\.com .* not supported"):
        compiled_selector(expression).matches(DRIVER, CARD)


def test_a_selector_that_is_too_long() -> None:
    with pytest.raises(CelTooComplex, match="10240 bytes"):
        check_selector(f"device.driver == '{'x' * 10_240}'")


def test_a_selector_that_is_too_expensive() -> None:
    nested = f"{OWN}.all(a, {OWN}.all(b, {OWN}.all(c, {OWN}.all(d, a + b + c + d != 'x'))))"
    with pytest.raises(CelTooComplex, match="too complex, exceeds cost limit"):
        check_selector(nested)
