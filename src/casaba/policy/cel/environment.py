"""The CEL environments: one to check types, as strict as Kubernetes', and one to evaluate in.

Two are needed since values of Kubernetes' own types can be declared, but not passed
(`quantities`). The checking environment knows the types; the evaluating one checks nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from casaba.policy.cel import lists, quantities
from casaba.policy.cel.quantities import QUANTITY, SEMVER

_T = cel.Type
_ANYTHING = _T.List(_T.DYN)

# fmt: off
UNSUPPORTED_FUNCTIONS = frozenset((
    "url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath",
    "getQuery", "ip", "isIP", "cidr", "isCIDR", "containsIP", "containsCIDR", "masked",
    "prefixLength", "family", "isUnspecified", "isLoopback", "isCanonical",
    "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "authorizer",
    "fieldSelector", "labelSelector", "named", "validate", "escapeKey", "includes",
    "slice", "flatten", "sort", "sortBy", "distinct", "reverse", "range", "first", "last",
    "indexOf", "lastIndexOf",
    # With two variables.
    "exists", "all", "existsOne", "transformList", "transformMap", "transformMapEntry",
))
# fmt: on
"""Functions of Kubernetes' libraries that are not evaluated here."""


@dataclass(frozen=True)
class _Function:
    """A function with its parameters by name of type; `q` is a quantity, `v` a version."""

    name: str
    parameters: str
    result: str
    call: Callable[..., Any]
    is_method: bool = True


_ADDABLE = ("int", "uint", "double", "duration")
_COMPARABLE = (*_ADDABLE, "bool", "string", "bytes", "timestamp")
"""What the elements of lists can be that are added up, or put in order."""

_FUNCTIONS = (
    _Function("quantity", "string", "q", quantities.to_quantity, is_method=False),
    _Function("isQuantity", "string", "bool", quantities.is_quantity, is_method=False),
    _Function("sign", "q", "int", quantities.sign),
    _Function("isInteger", "q", "bool", quantities.is_integer),
    _Function("asInteger", "q", "int", quantities.as_integer),
    _Function("asApproximateFloat", "q", "double", quantities.as_float),
    _Function("add", "q q", "q", quantities.add),
    _Function("add", "q int", "q", quantities.add),
    _Function("sub", "q q", "q", quantities.subtract),
    _Function("sub", "q int", "q", quantities.subtract),
    _Function("semver", "string", "v", quantities.to_version, is_method=False),
    _Function("semver", "string bool", "v", quantities.to_version, is_method=False),
    _Function("isSemver", "string", "bool", quantities.is_version, is_method=False),
    _Function("isSemver", "string bool", "bool", quantities.is_version, is_method=False),
    _Function("major", "v", "int", quantities.major),
    _Function("minor", "v", "int", quantities.minor),
    _Function("patch", "v", "int", quantities.patch),
    *(
        function
        for type_ in "qv"
        for function in (
            _Function("compareTo", f"{type_} {type_}", "int", quantities.compare),
            _Function(
                "isGreaterThan",
                f"{type_} {type_}",
                "bool",
                lambda one, other: quantities.compare(one, other) > 0,
            ),
            _Function(
                "isLessThan",
                f"{type_} {type_}",
                "bool",
                lambda one, other: quantities.compare(one, other) < 0,
            ),
        )
    ),
    *(
        function
        for type_ in _COMPARABLE
        for function in (
            _Function("isSorted", f"list<{type_}>", "bool", lists.is_sorted),
            _Function("min", f"list<{type_}>", f"element<{type_}>", lists.smallest),
            _Function("max", f"list<{type_}>", f"element<{type_}>", lists.largest),
        )
    ),
    *(_Function("sum", f"list<{type_}>", f"element<{type_}>", lists.total) for type_ in _ADDABLE),
    _Function("sets.contains", "list list", "bool", lists.contains, is_method=False),
    _Function("sets.equivalent", "list list", "bool", lists.equivalent, is_method=False),
    _Function("sets.intersects", "list list", "bool", lists.intersects, is_method=False),
    _Function("find", "string string", "string", lists.find),
    _Function("findAll", "string string", "list", lists.find_all),
    _Function("findAll", "string string int", "list", lists.find_all),
)

_COMMON_TYPES = {
    "string": _T.STRING,
    "bool": _T.BOOL,
    "int": _T.INT,
    "uint": _T.UINT,
    "double": _T.DOUBLE,
    "duration": _T.DURATION,
    "bytes": _T.BYTES,
    "timestamp": _T.TIMESTAMP,
    "dyn": _T.DYN,
    "list": _ANYTHING,
}
_CHECKED_QUANTITY = _T.AbstractType(QUANTITY)
_HELD = _T.Map(_T.STRING, _T.STRING)
_CHECKED_TYPES = {
    **_COMMON_TYPES,
    "q": _CHECKED_QUANTITY,
    "v": _T.AbstractType(SEMVER),
    **{f"list<{name}>": _T.List(_COMMON_TYPES[name]) for name in _COMPARABLE},
    **{f"element<{name}>": _COMMON_TYPES[name] for name in _COMPARABLE},
}
_HELD_TYPES = {
    **_COMMON_TYPES,
    "q": _HELD,
    "v": _HELD,
    # At run time a list is a list, whatever is in it.
    **{f"list<{name}>": _ANYTHING for name in _COMPARABLE},
    **{f"element<{name}>": _T.DYN for name in _COMPARABLE},
}

_ANY = _T("google.protobuf.Any")
_DEVICE_VARIABLES = {
    "device.driver": _T.STRING,
    "device.attributes": _T.Map(_T.STRING, _T.Map(_T.STRING, _ANY)),
    "device.capacity": _T.Map(_T.STRING, _T.Map(_T.STRING, _CHECKED_QUANTITY)),
    "device.allowMultipleAllocations": _T.BOOL,
}
"""The fields of the object `device`; declared one by one, they can't be taken for others."""


@cache
def device_checks() -> Any:
    """Checks selectors of devices."""
    return _environment(_DEVICE_VARIABLES, _CHECKED_TYPES)


@cache
def condition_checks(variables: tuple[str, ...]) -> Any:
    """Checks conditions over JSON objects with these names."""
    return _environment(dict.fromkeys(variables, _T.DYN), _CHECKED_TYPES)


@cache
def evaluation(variables: tuple[str, ...]) -> Any:
    """Evaluates expressions that were checked, over variables with these names."""
    return _environment(dict.fromkeys(variables, _T.DYN), _HELD_TYPES)


def _environment(variables: dict[str, Any], types: dict[str, Any]) -> Any:
    return cel.NewEnv(
        variables=variables,
        functions=_declarations(types),
        extensions=[
            ext_strings.ExtStrings(2),
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
        ],
    )


def _declarations(types: dict[str, Any]) -> list[Any]:
    """Overloads that become the same with these types are declared once."""
    overloads: dict[str, dict[str, Any]] = {}
    for function in _FUNCTIONS:
        parameters = [types[name] for name in function.parameters.split()]
        identity = "_".join([function.name, *(type_.name() for type_ in parameters)])
        overloads.setdefault(function.name, {})[identity] = cel.Overload(
            identity, types[function.result], parameters, function.is_method, function.call
        )
    return [cel.FunctionDecl(name, list(each.values())) for name, each in overloads.items()]
