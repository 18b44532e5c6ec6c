"""Expressions checked and evaluated."""

from collections.abc import Mapping
from typing import Any

from casaba.policy.cel.environment import evaluation
from casaba.policy.cel.errors import CelCompileError, CelRuntimeError
from casaba.policy.cel.issues import compile_error, runtime_error
from casaba.wire.cel_syntax import Aggregate, Call, Constant, Node, Syntax, parsed_syntax, walk

_ANY_TYPE = ("dyn", "any", "null")
_CHECKED_LITERALS = {
    "matches": "''.matches(text)",
    "timestamp": "timestamp(text) == timestamp(text)",
    "duration": "duration(text) == duration(text)",
}
"""Functions whose argument, if it is a literal, must be right already."""


def checked(environment: Any, expression: str) -> Syntax:
    """The tree of an expression that Kubernetes would accept; raises CelCompileError."""
    try:
        syntax = parsed_syntax(environment.compile(expression).serialize())
    except RuntimeError as error:
        raise compile_error(str(error)) from None
    for node in walk(syntax.root):
        _check_literal(node)
        _check_elements(node, syntax)
    return syntax


def _check_literal(node: Node) -> None:
    if not isinstance(node, Call) or node.function not in _CHECKED_LITERALS:
        return
    argument = node.arguments[-1]
    if isinstance(argument, Constant) and argument.text is not None:
        try:
            truth(_program(_CHECKED_LITERALS[node.function]), {"text": argument.text})
        except CelRuntimeError:
            raise CelCompileError(
                f"compilation failed: invalid {node.function} argument: {argument.text!r}"
            ) from None


def _program(expression: str) -> Any:
    return evaluation(("text",)).compile(expression, disable_check=True)


def _check_elements(node: Node, syntax: Syntax) -> None:
    """The elements of a list must be of one type."""
    if not isinstance(node, Aggregate) or not node.is_list:
        return
    kinds = [syntax.kinds.get(element.id, "dyn") for element in node.elements]
    known = list(dict.fromkeys(kind for kind in kinds if kind not in _ANY_TYPE))
    if len(known) > 1:
        raise CelCompileError(
            f"compilation failed: expected type '{known[0]}' but found '{known[1]}'"
        )


def truth(program: Any, variables: Mapping[str, Any]) -> bool:
    """What a program says; raises CelRuntimeError, also if it is not true or false."""
    try:
        result = program.eval(data=variables)
    except RuntimeError as error:
        raise runtime_error(str(error)) from None
    kind = result.type().name()
    if kind == "ERROR":
        raise runtime_error(str(result.value()))
    if kind != "BOOL":
        raise CelRuntimeError(
            f"CEL result of type {kind.lower()} could not be converted to bool: "
            f"type conversion error from '{kind.lower()}' to 'bool'"
        )
    return bool(result.value())
