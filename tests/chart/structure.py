"""Objects held to the API's own structure, by the models of Kubernetes' client library.

Fields that the API does not know and values of another shape are found; what values may be is not
looked at. Of kinds that only an operator brings, the fields that its documents name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models

_OPERATORS: dict[str, dict[str, frozenset[str]]] = {
    "Issuer": {"spec": frozenset({"selfSigned", "ca"})},
    "Certificate": {
        "spec": frozenset(
            {
                "commonName",
                "dnsNames",
                "duration",
                "isCA",
                "issuerRef",
                "privateKey",
                "secretName",
            }
        )
    },
    "ServiceMonitor": {"spec": frozenset({"selector", "namespaceSelector", "endpoints"})},
    "PrometheusRule": {"spec": frozenset({"groups"})},
}
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
}
_QUANTITIES = ("limits", "requests", "capacity", "sizeLimit")


def misfits(object_: dict[str, Any]) -> list[str]:
    """Everything about an object that the API would not know or take."""
    kind = object_["kind"]
    if kind in _OPERATORS:
        return list(_unlisted(object_, _OPERATORS[kind]))
    group, _, version = object_["apiVersion"].rpartition("/")
    # Where two groups have a kind of one name, the models carry the group's.
    owner = (group.partition(".")[0] or "core").capitalize()
    prefix = f"{version[0].upper()}{version[1:]}"
    name = next(
        (one for one in (f"{owner}{prefix}{kind}", f"{prefix}{kind}") if hasattr(models, one)), None
    )
    return list(_unlike(object_, name, kind)) if name else [f"{group}/{version} has no {kind}"]


def _unlisted(object_: dict[str, Any], known: dict[str, frozenset[str]]) -> Iterator[str]:
    for part, fields in known.items():
        for field in object_[part].keys() - fields:
            yield f"{object_['kind']}.{part}: no field {field}"


def _unlike(value: Any, wanted: str, at: str) -> Iterator[str]:
    if value is None or wanted == "object":
        return
    if found := re.fullmatch(r"List\[(.+)\]", wanted):
        yield from _unlike_list(value, found[1], at)
    elif found := re.fullmatch(r"Dict\[str, (.+)\]", wanted):
        yield from _unlike_map(value, found[1], at)
    elif wanted in _PLAIN:
        if not isinstance(value, _PLAIN[wanted]) or (wanted == "int" and isinstance(value, bool)):
            yield f"{at}: {value!r} is no {wanted}"
    elif hasattr(models, wanted):
        yield from _unlike_model(value, wanted, at)


def _unlike_list(value: Any, element: str, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at}: {value!r} is no list"
        return
    for index, one in enumerate(value):
        yield from _unlike(one, element, f"{at}[{index}]")


def _unlike_map(value: Any, element: str, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is no map"
        return
    numbers = at.rpartition(".")[2] in _QUANTITIES
    for key, one in value.items():
        if not (numbers and isinstance(one, int | float)):
            yield from _unlike(one, element, f"{at}.{key}")


def _unlike_model(value: Any, wanted: str, at: str) -> Iterator[str]:
    model = getattr(models, wanted)
    if not hasattr(model, "openapi_types"):
        return
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is no {wanted}"
        return
    spelt = {external: internal for internal, external in model.attribute_map.items()}
    for key, one in value.items():
        if key not in spelt:
            yield f"{at}: no field {key}"
        else:
            yield from _unlike(one, model.openapi_types[spelt[key]], f"{at}.{key}")
