"""Selectors of devices: conditions on the variable `device` (KEP 4381).

`device.driver`, `device.attributes[domain].name`, `device.capacity[domain].name` and
`device.allowMultipleAllocations`. Names without a domain are in the driver's; an unknown domain
is an empty map, an unknown name an error.
"""

import re
from functools import lru_cache
from typing import Any

from casaba.policy.cel.cost import estimated_cost
from casaba.policy.cel.environment import device_checks, evaluation
from casaba.policy.cel.errors import (
    CelCompileError,
    CelMissingKey,
    CelRuntimeError,
    CelTooComplex,
    CelUnsupported,
)
from casaba.policy.cel.expressions import checked, truth
from casaba.policy.cel.quantities import held_quantity, held_version
from casaba.wire.cel_syntax import Call, Constant, Identifier, Node, Syntax, children, walk
from casaba.wire.kubernetes import Device, DeviceAttribute

EXPRESSION_LIMIT_BYTES = 10_240
COST_LIMIT = 1_000_000
"""In the cost units of cel-go (resource/v1, CELSelectorExpressionMaxCost)."""

_COMPILED_SELECTORS = 512
_FIELD_IS_THERE = re.compile(
    r"""[rR]?(?P<quotes>'''|\"{3}).*?(?P=quotes)|[rR](?:'[^']*'|"[^"]*")"""
    r"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
    r"""|\bhas\(\s*device\s*\.\s*(?P<field>driver|attributes|capacity)\s*\)""",
    re.DOTALL,
)
"""`has` of a field that every device has; a text in quotes is passed over."""
_DOMAINS = {"device.attributes": "attributes", "device.capacity": "capacity"}
_INDEX = ("_[_]", "_[?_]")
_Domains = dict[str, dict[str, Any]]


class CompiledSelector:
    """A selector that can be asked about devices."""

    def __init__(self, expression: str, syntax: Syntax) -> None:
        """Raises CelUnsupported if domains are used in a way that is not evaluated here."""
        self._program = evaluation(("device",)).compile(expression, disable_check=True)
        self._named = _named_domains(syntax.root)
        self._whole = _used_as_a_whole(syntax.root)

    def matches(self, driver: str, device: Device) -> bool:
        """Raises CelRuntimeError, such as `no such key: x`."""
        attributes, capacity = self._empty("attributes"), self._empty("capacity")
        for name, attribute in device.attributes.items():
            _put(attributes, name, driver, _held_attribute(attribute))
        for name, amount in device.capacity.items():
            _put(capacity, name, driver, held_quantity(amount.value))
        variable = {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.allow_multiple_allocations,
        }
        try:
            return truth(self._program, {"device": variable})
        except CelMissingKey as error:
            raise self._translated(error) from None

    def _empty(self, part: str) -> _Domains:
        """Domains that are asked for by name are there, be it empty.

        Not where the expression also looks at all domains: there it must see what is missing.
        """
        return {} if part in self._whole else {name: {} for name in self._named[part]}

    def _translated(self, error: CelMissingKey) -> CelRuntimeError:
        if any(error.key in self._named[part] for part in self._whole):
            return CelRuntimeError(
                f"domain {error.key} is missing, and all domains are looked at together: "
                "that is not supported here"
            )
        return error


@lru_cache(_COMPILED_SELECTORS)
def compiled_selector(expression: str) -> CompiledSelector:
    """Raises CelCompileError, with the message of the API server and the scheduler."""
    return CompiledSelector(expression, _checked_selector(expression))


def check_selector(expression: str) -> None:
    """What the API server looks at before it stores a selector.

    Raises CelCompileError, or CelTooComplex: for a text over `EXPRESSION_LIMIT_BYTES` or an
    estimated cost over `COST_LIMIT`. The estimate is close to the API server's, not the same.
    """
    if len(expression.encode()) > EXPRESSION_LIMIT_BYTES:
        raise CelTooComplex(f"may not be more than {EXPRESSION_LIMIT_BYTES} bytes")
    if estimated_cost(_checked_selector(expression).root) > COST_LIMIT:
        raise CelTooComplex("too complex, exceeds cost limit")


def _checked_selector(expression: str) -> Syntax:
    syntax = checked(device_checks(), _with_fields_present(expression))
    kind = syntax.kinds.get(syntax.root.id, "dyn")
    if kind not in ("bool", "any", "dyn"):
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {kind}")
    return syntax


def _with_fields_present(expression: str) -> str:
    """With `true` for each `has(device.FIELD)`, in as many characters.

    The checks know the fields of `device` as variables (`environment`), and `has` knows none.
    """
    return _FIELD_IS_THERE.sub(
        lambda found: "true".ljust(len(found[0])) if found["field"] else found[0], expression
    )


def _named_domains(root: Node) -> dict[str, set[str]]:
    """The domains that an expression asks for by name."""
    named: dict[str, set[str]] = {"attributes": set(), "capacity": set()}
    for call in walk(root):
        if (found := _indexed(call)) is not None:
            named[_DOMAINS[found[0]]].add(found[1])
    return named


def _used_as_a_whole(root: Node) -> set[str]:
    """Which of attributes and capacity an expression also looks at without a domain's name."""
    whole = {
        _DOMAINS[child.name]
        for node in walk(root)
        if _indexed(node) is None
        for child in children(node)
        if isinstance(child, Identifier) and child.name in _DOMAINS
    }
    optional = any(isinstance(node, Call) and node.function == "_[?_]" for node in walk(root))
    if whole and optional:
        raise CelUnsupported("[?…] beside device.attributes as a whole is not supported here")
    return whole


def _indexed(node: Node) -> tuple[str, str] | None:
    """Of `device.attributes["d"]`: what is indexed, and the domain."""
    if not isinstance(node, Call) or node.function not in _INDEX:
        return None
    of, key = node.operands
    if isinstance(of, Identifier) and of.name in _DOMAINS:
        if not isinstance(key, Constant) or key.text is None:
            raise CelUnsupported(f"{of.name}[…] is only supported with a text in the brackets")
        return of.name, key.text
    return None


def _put(domains: _Domains, name: str, driver: str, value: Any) -> None:
    domain, separator, identifier = name.partition("/")
    if not separator:
        domain, identifier = driver, name
    domains.setdefault(domain, {})[identifier] = value


def _held_attribute(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        return held_version(attribute.version)
    values = (attribute.int_, attribute.bool_, attribute.string)
    return next((value for value in values if value is not None), None)
