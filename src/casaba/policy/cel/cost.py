"""What evaluating an expression could cost at most, in the units of cel-go.

An approximation of cel-go's estimate with Kubernetes' own functions: the same weights for what
selectors are made of, the sizes that the API allows for what a device has. What it does not know
counts as long as the longest text of a device.
"""

from casaba.wire.cel_syntax import (
    Aggregate,
    Call,
    Comprehension,
    Constant,
    Identifier,
    Node,
    Selection,
)

_TRAVERSAL = 0.1
"""Per character of a text that is read."""
_PATTERN = 0.25
"""Per character of a regular expression."""
_LIST, _MAP = 10, 30
_TEXT_SIZE = 64
_MAP_SIZE = 32
_SIZES = {"device.attributes": _MAP_SIZE, "device.capacity": _MAP_SIZE, "device.driver": 63}
_KEYS = ("_[_]", "_[?_]", "_?._")
_LOGIC = ("_&&_", "_||_")
_COMPARISONS = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_")
_READERS = ("startsWith", "endsWith", "lowerAscii", "upperAscii", "trim", "substring", "indexOf",
            "lastIndexOf", "quantity", "isQuantity", "semver", "isSemver", "isSorted", "sum",
            "min", "max")  # fmt: skip
_REWRITERS = ("replace", "split", "join")
_PATTERNS = ("matches", "find", "findAll")
_PAIRS = ("contains", "sets.contains", "sets.equivalent", "sets.intersects")

_Sizes = dict[str, float]
"""How large the values of variables of a comprehension can be."""


def estimated_cost(root: Node) -> float:
    """The most that one evaluation can cost."""
    return _cost(root, dict(_SIZES))


def _cost(node: Node, sizes: _Sizes) -> float:
    match node:
        case Identifier():
            # `device.driver` is an identifier and a field.
            return 1 + node.name.count(".")
        case Selection():
            return 0 if node.test_only else 1 + _cost(node.operand, sizes)
        case Call():
            return _call_cost(node, sizes)
        case Aggregate():
            own = _LIST if node.is_list else _MAP
            return own + sum(_cost(element, sizes) for element in node.elements)
        case Comprehension():
            return _comprehension_cost(node, sizes)
    return 0


def _call_cost(node: Call, sizes: _Sizes) -> float:
    costs = [_cost(operand, sizes) for operand in node.operands]
    if node.function in _LOGIC:
        return sum(costs)
    if node.function == "_?_:_":
        return costs[0] + max(costs[1:])
    return sum(costs) + _function_cost(node, [_size(operand, sizes) for operand in node.operands])


def _function_cost(node: Call, sizes: list[float]) -> float:
    first, second = (*sizes, 1.0, 1.0)[:2]
    if node.function in _COMPARISONS:
        return max(1.0, min(first, second) * _TRAVERSAL)
    if node.function in _PATTERNS:
        return (1 + first) * _TRAVERSAL * max(1.0, second * _PATTERN)
    if node.function in _PAIRS:
        return first * _TRAVERSAL * second * _TRAVERSAL if node.target else first * second
    if node.function in _READERS:
        return max(1.0, first * _TRAVERSAL)
    if node.function in _REWRITERS:
        return max(1.0, first * 2 * _TRAVERSAL)
    if node.function == "@in":
        return second
    return max(1.0, (first + second) * _TRAVERSAL) if node.function == "_+_" else 1.0


def _comprehension_cost(node: Comprehension, sizes: _Sizes) -> float:
    times = _size(node.range, sizes)
    inner = {**sizes, node.variable: _TEXT_SIZE, node.accumulator: _size(node.start, sizes)}
    each = _cost(node.condition, inner) + _cost(node.step, inner)
    around = _cost(node.range, sizes) + _cost(node.start, sizes) + _cost(node.result, inner)
    return around + times * each


def _size(node: Node, sizes: _Sizes) -> float:
    """Characters of a text, elements of a list or map."""
    match node:
        case Constant():
            return len(node.text) if node.text is not None else 1
        case Identifier():
            return sizes.get(node.name, _TEXT_SIZE)
        case Aggregate():
            return len(node.elements)
        case Call() if node.function in _KEYS and _is_domain(node):
            return _MAP_SIZE
        case Call() if node.function == "_+_":
            return sum(_size(operand, sizes) for operand in node.operands)
    return _TEXT_SIZE


def _is_domain(node: Call) -> bool:
    of = node.operands[0]
    return isinstance(of, Identifier) and of.name in ("device.attributes", "device.capacity")
