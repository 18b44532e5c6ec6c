"""What of a pod its conversion depends on: pods of one controller mostly have it in common."""

from collections.abc import Collection
from typing import Any

from casaba.policy.convert.card_choice import CHOOSING
from casaba.policy.convert.conversion import IGNORE_LABEL
from casaba.policy.convert.environment import CORE_POLICY_VARIABLE, DISABLE_VARIABLE
from casaba.policy.convert.patches import RECORD_ANNOTATION
from casaba.policy.convert.pods import ALL_LISTS, Object, objects
from casaba.policy.convert.scheduling_wishes import (
    GPU_POLICY,
    MODE,
    NODE_POLICY,
    NUMA_BIND,
    WEIGHTS,
)

_ANNOTATIONS = (*CHOOSING, GPU_POLICY, NODE_POLICY, WEIGHTS, NUMA_BIND, MODE, RECORD_ANNOTATION)
_METADATA = {"labels": (IGNORE_LABEL,), "annotations": _ANNOTATIONS}
_SPEC = ("resources", "resourceClaims", "nodeName", "schedulerName", *ALL_LISTS)
_CONTAINER = ("name", "restartPolicy", "resources", "securityContext")
_VARIABLES = (CORE_POLICY_VARIABLE, DISABLE_VARIABLE)


def essence(pod: Object) -> Object:
    """The pod without what `convert_pod` does not read; it is converted as the pod itself."""
    metadata, spec = _only(pod.get("metadata"), _METADATA), _only(pod.get("spec"), _SPEC)
    if isinstance(metadata, dict):
        metadata = {name: _only(value, _METADATA[name]) for name, value in metadata.items()}
    if isinstance(spec, dict):
        lists = {name: spec[name] for name in ALL_LISTS if isinstance(spec.get(name), list)}
        spec |= {name: [_container(one) for one in entries] for name, entries in lists.items()}
    return {"metadata": metadata, "spec": spec}


def _container(content: Any) -> Any:
    """What is none keeps its place, since patches count."""
    if not isinstance(content, dict):
        return None
    variables = [one for one in objects(content.get("env")) if one.get("name") in _VARIABLES]
    return {**_only(content, _CONTAINER), "env": variables}


def _only(value: Any, names: Collection[str]) -> Any:
    """Those fields of an object; what is no object stays as it is."""
    return (
        {name: value[name] for name in names if name in value} if isinstance(value, dict) else value
    )
