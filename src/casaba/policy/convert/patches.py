"""The JSON patch (RFC 6902) of a pod, and what a patched pod tells."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from casaba.policy.convert.pods import Container, Object, described, mapping, spec
from casaba.policy.convert.refusals import MALFORMED, PodRefused, shown

Operation = dict[str, Any]

DRA_LABEL, DRA_LABEL_VALUE = "hami.io/dra", "true"
"""Tells a converted pod; kept from HAMi."""

RECORD_ANNOTATION = "casaba.dev/converted-resources"
"""JSON: for each container what was taken away."""

Record = Mapping[str, Mapping[str, str]]

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def resources_patch(
    container: Container, taken: Collection[str], claims: Iterable[Mapping[str, str]] = ()
) -> Operation:
    """The container's resources without the names, with these claims besides its own.

    Raises PodRefused if its claims are no list.
    """
    resources = dict(container.resources)
    for kind in ("limits", "requests"):
        left = {
            name: value for name, value in mapping(resources.get(kind)).items() if name not in taken
        }
        resources.pop(kind, None)
        if left:
            resources[kind] = left
    if added := [dict(claim) for claim in claims]:
        resources["claims"] = [*_list(resources, "claims", described(container)), *added]
    return {"op": "replace", "path": f"{container.pointer}/resources", "value": resources}


def claim_patch(pod: Object, entry: str, template: str) -> Operation:
    """The pod's claims and one more."""
    own = _list(spec(pod), "resourceClaims", "spec")
    added = {"name": entry, "resourceClaimTemplateName": template}
    return {"op": "add", "path": "/spec/resourceClaims", "value": [*own, added]}


def metadata_patches(pod: Object, record: Record) -> list[Operation]:
    """The label, and the record joined with an earlier one."""
    metadata = pod.get("metadata")
    joined = {**recorded(pod), **record}
    wanted = {
        "labels": {DRA_LABEL: DRA_LABEL_VALUE},
        "annotations": {RECORD_ANNOTATION: _canonical(joined)},
    }
    if not isinstance(metadata, dict):
        return [{"op": "add", "path": "/metadata", "value": wanted}]
    return [
        operation
        for field, entries in wanted.items()
        for operation in _entries_patch(metadata, field, entries)
    ]


def recorded(pod: Object) -> Record:
    """What a converted pod says was taken away; empty where that is missing or was spoilt."""
    metadata = mapping(pod.get("metadata"))
    text = mapping(metadata.get("annotations")).get(RECORD_ANNOTATION)
    try:
        record = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return {
        name: {resource: text for resource, text in taken.items() if isinstance(text, str)}
        for name, taken in mapping(record).items()
        if isinstance(taken, dict)
    }


def _entries_patch(metadata: Object, field: str, entries: Mapping[str, str]) -> list[Operation]:
    if not isinstance(metadata.get(field), dict):
        return [{"op": "add", "path": f"/metadata/{field}", "value": dict(entries)}]
    return [
        {"op": "add", "path": f"/metadata/{field}/{_escaped(name)}", "value": value}
        for name, value in entries.items()
    ]


def _escaped(name: str) -> str:
    """A part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _list(owner: Object, field: str, place: str) -> list[Any]:
    value = owner.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise PodRefused(f"{place}: {field}: {shown(value)} is no list", code=MALFORMED)
    return value
