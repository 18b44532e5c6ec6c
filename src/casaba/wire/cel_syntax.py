"""A type-checked CEL expression as a tree (cel.expr.CheckedExpr of the cel-spec, protobuf).

Only what is needed to look at an expression: the nodes, and the type of each as its kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_SIZE = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}

_Fields = dict[int, list[int | bytes]]

_KINDS = {
    1: "dyn", 2: "null", 3: "primitive", 4: "wrapper", 5: "well-known", 6: "list", 7: "map",
    8: "function", 9: "message", 10: "parameter", 11: "type", 12: "error", 14: "abstract",
}  # fmt: skip
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}
_TEXT_CONSTANT = 6


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A literal; only the value of a string is kept."""

    id: int
    text: str | None


@dataclass(frozen=True, kw_only=True)
class Identifier:
    """A variable; its name may have dots."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A field of a value, or whether there is such a field."""

    id: int
    operand: "Node"
    field: str
    test_only: bool


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function, an operator (`_==_`) or a method (with a target)."""

    id: int
    target: Union["Node", None]
    function: str
    arguments: tuple["Node", ...]

    @property
    def operands(self) -> tuple["Node", ...]:
        """Target, if there is one, and arguments."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A list, or a map or message with keys and values one after the other."""

    id: int
    is_list: bool
    elements: tuple["Node", ...]


@dataclass(frozen=True, kw_only=True)
class Comprehension:
    """What macros such as `all` and `cel.bind` become: a fold over a list or map."""

    id: int
    variable: str
    range: "Node"
    accumulator: str
    start: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"

    @property
    def parts(self) -> tuple["Node", ...]:
        return self.range, self.start, self.condition, self.step, self.result


Node = Constant | Identifier | Selection | Call | Aggregate | Comprehension


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """An expression and the type of each node, by the node's id: `list`, but not of what."""

    root: Node
    kinds: dict[int, str]


def parsed_syntax(serialized: bytes) -> Syntax:
    """The tree in a serialised expression: a google.protobuf.Any with a CheckedExpr."""
    checked = _fields(_bytes(_fields(serialized), 2))
    kinds = {}
    for entry in checked.get(3, []):
        fields = _fields(_as_bytes(entry))
        kinds[_number(fields, 1)] = _kind(_fields(_bytes(fields, 2)))
    return Syntax(root=_node(_bytes(checked, 4)), kinds=kinds)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below one."""
    match node:
        case Selection():
            return (node.operand,)
        case Call():
            return node.operands
        case Aggregate():
            return node.elements
        case Comprehension():
            return node.parts
    return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _kind(type_: _Fields) -> str:
    for number, kind in _KINDS.items():
        if number in type_:
            if kind == "primitive":
                return _PRIMITIVES.get(_number(type_, number), kind)
            if kind == "abstract":
                return _bytes(_fields(_bytes(type_, number)), 1).decode()
            return _WELL_KNOWN.get(_number(type_, number), kind) if kind == "well-known" else kind
    return "dyn"


def _node(serialized: bytes) -> Node:
    fields = _fields(serialized)
    identity = _number(fields, 2)
    for number, read in _READERS.items():
        if number in fields:
            return read(identity, _fields(_bytes(fields, number)))
    return Constant(id=identity, text=None)


def _constant(identity: int, fields: _Fields) -> Node:
    text = _bytes(fields, _TEXT_CONSTANT).decode() if _TEXT_CONSTANT in fields else None
    return Constant(id=identity, text=text)


def _identifier(identity: int, fields: _Fields) -> Node:
    return Identifier(id=identity, name=_bytes(fields, 1).decode())


def _selection(identity: int, fields: _Fields) -> Node:
    return Selection(
        id=identity,
        operand=_node(_bytes(fields, 1)),
        field=_bytes(fields, 2).decode(),
        test_only=bool(_number(fields, 3)),
    )


def _call(identity: int, fields: _Fields) -> Node:
    return Call(
        id=identity,
        target=_node(_bytes(fields, 1)) if 1 in fields else None,
        function=_bytes(fields, 2).decode(),
        arguments=tuple(_node(_as_bytes(part)) for part in fields.get(3, [])),
    )


def _list(identity: int, fields: _Fields) -> Node:
    elements = tuple(_node(_as_bytes(part)) for part in fields.get(1, []))
    return Aggregate(id=identity, is_list=True, elements=elements)


def _map(identity: int, fields: _Fields) -> Node:
    entries = [_fields(_as_bytes(part)) for part in fields.get(2, [])]
    elements = tuple(
        _node(_bytes(entry, number)) for entry in entries for number in (3, 4) if number in entry
    )
    return Aggregate(id=identity, is_list=False, elements=elements)


def _comprehension(identity: int, fields: _Fields) -> Node:
    return Comprehension(
        id=identity,
        variable=_bytes(fields, 1).decode(),
        range=_node(_bytes(fields, 2)),
        accumulator=_bytes(fields, 3).decode(),
        start=_node(_bytes(fields, 4)),
        condition=_node(_bytes(fields, 5)),
        step=_node(_bytes(fields, 6)),
        result=_node(_bytes(fields, 7)),
    )


_READERS = {
    3: _constant,
    4: _identifier,
    5: _selection,
    6: _call,
    7: _list,
    8: _map,
    9: _comprehension,
}


def _fields(message: bytes) -> _Fields:
    """The fields of a protobuf message, by number."""
    fields: _Fields = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value: int | bytes
        if tag & 7 == _VARINT:
            value, at = _varint(message, at)
        else:
            size = _SIZE.get(tag & 7, 0)
            if tag & 7 == _LENGTH:
                size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _bytes(fields: _Fields, number: int) -> bytes:
    return _as_bytes(fields.get(number, [b""])[-1])


def _as_bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _number(fields: _Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0
