"""Errors of the library in the words of cel-go, which Kubernetes uses."""

import re

from casaba.policy.cel.environment import UNSUPPORTED_FUNCTIONS
from casaba.policy.cel.errors import (
    CelCompileError,
    CelMissingKey,
    CelRuntimeError,
    CelUnsupported,
)

_DEVICE = "device"
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_FIELD = re.compile(r"undeclared reference to 'device\.([^']*)' \(in container ''\)")
_QUALIFIED = re.compile(
    r"<input>:(?P<line>\d+):(?P<column>\d+): undeclared reference to "
    r"'(?P<root>[^'.]+)(?P<rest>\.[^']*)?\.[^'.]+' \(in container ''\)\n"
    r" \| (?P<source>.*)\n \| \.+\^"
)
_ON_LISTS = re.compile(r"overload for '(indexOf|lastIndexOf)' applied to '\(?list")
_MIXED_NUMBERS = re.compile(r"'_[<>]=?_' applied to '\((u?int|double), (u?int|double)\)'")
_TOO_DEEP = re.compile(r"recursion (?:depth of|limit exceeded\. limit:) (\d+)")
_WORDING = (("cannot be the range of", "cannot be range of"), ("null_type", "null"))
_MISSING_KEY = re.compile(r'Key not found in map : "?(.*?)"?$', re.DOTALL)
_RUNTIME_WORDS = (
    ("No matching overload", "no such overload"),
    ("Applying SELECT to non-message", "no such overload"),
    ("divide by zero", "division by zero"),
    ("modulus by zero", "modulus by zero"),
)


def compile_error(text: str) -> CelCompileError:
    """What is wrong with an expression, or what of it is not evaluated here."""
    issues = text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]").strip()
    for ours, theirs in _WORDING:
        issues = issues.replace(ours, theirs)
    issues = _QUALIFIED.sub(_at_its_root, _FIELD.sub(r"undefined field '\1'", issues))
    if nesting := _TOO_DEEP.search(issues):
        return CelUnsupported(f"only {nesting[1]} levels are supported here, one inside the other")
    for name in (*_UNDECLARED.findall(issues), *_ON_LISTS.findall(issues)):
        if name == _DEVICE:
            return CelUnsupported("device is only supported with a field, such as device.driver")
        if name in UNSUPPORTED_FUNCTIONS:
            return CelUnsupported(f"{name}() is not supported here; Kubernetes may know it")
    if _MIXED_NUMBERS.search(issues):
        return CelUnsupported("numbers of two types are only compared here if one is an attribute")
    return CelCompileError(f"compilation failed: {issues}")


def _at_its_root(match: "re.Match[str]") -> str:
    """Of an unknown `a.b.c` the library tells all, at its last dot; cel-go tells `a`."""
    column = int(match["column"]) - len(match["root"]) - len(match["rest"] or "")
    return (
        f"<input>:{match['line']}:{column}: undeclared reference to '{match['root']}' "
        f"(in container '')\n | {match['source']}\n | {'.' * (column - 1)}^"
    )


def runtime_error(text: str) -> CelRuntimeError:
    """Why an expression failed on a value."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    if missing := _MISSING_KEY.search(text):
        return CelMissingKey(missing[1])
    return CelRuntimeError(next((words for part, words in _RUNTIME_WORDS if part in text), text))
