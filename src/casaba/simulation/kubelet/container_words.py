"""Command line and environment of a container, as the kubelet makes them. Pure.

Source: Kubernetes API reference, Container: command, args, env, envFrom.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from casaba.errors import CasabaError

Object = Mapping[str, Any]
Sources = Mapping[tuple[str, str], Mapping[str, str]]
"""What ConfigMaps and Secrets hold, by (kind, name); one that does not exist is not in it."""

POD_IP = "127.0.0.1"

_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_KINDS = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
_FROM_KINDS = {"configMapRef": "ConfigMap", "secretRef": "Secret"}


class ContainerNotConfigurable(CasabaError):
    """A container that refers to something that is not there, or is not supported here."""


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """`$(NAME)` replaced by its value; unknown names stay, `$$` is a dollar."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def command_line(
    container: Object, image_command: Sequence[str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Program and arguments; empty if neither container nor image name a program."""
    command: Sequence[str] = container.get("command") or ()
    args: Sequence[str] = container.get("args") or ()
    if not command:
        command = image_command[:1] if args else image_command
    return tuple(expanded(word, environment) for word in (*command, *args))


def container_environment(
    container: Object, pod: Object, sources: Sources, base: Mapping[str, str]
) -> dict[str, str]:
    """`base`, then envFrom, then env; raises ContainerNotConfigurable."""
    result = dict(base)
    for entry in container.get("envFrom") or ():
        result.update(_from_source(entry, sources))
    for entry in container.get("env") or ():
        value = _value(entry, container, pod, sources, result)
        if value is not None:
            result[entry["name"]] = value
    return result


def sources_of(pod: Object) -> Iterator[tuple[str, str]]:
    """(kind, name) of every ConfigMap and Secret that the pod's environments refer to."""
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for entry in container.get("env") or ():
            for field, kind in _KINDS.items():
                if reference := (entry.get("valueFrom") or {}).get(field):
                    yield kind, reference.get("name", "")
        for entry in container.get("envFrom") or ():
            for field, kind in _FROM_KINDS.items():
                if reference := entry.get(field):
                    yield kind, reference.get("name", "")


def _from_source(entry: Object, sources: Sources) -> dict[str, str]:
    prefix = entry.get("prefix", "")
    for field, kind in _FROM_KINDS.items():
        if reference := entry.get(field):
            found = _source(kind, reference, sources)
            return {prefix + key: value for key, value in (found or {}).items()}
    return {}


def _source(kind: str, reference: Object, sources: Sources) -> Mapping[str, str] | None:
    name = reference.get("name", "")
    if (found := sources.get((kind, name))) is not None:
        return found
    if reference.get("optional"):
        return None
    raise ContainerNotConfigurable(f'{kind.lower()} "{name}" not found')


def _value(
    entry: Object, container: Object, pod: Object, sources: Sources, known: Mapping[str, str]
) -> str | None:
    origin = entry.get("valueFrom")
    if not origin:
        return expanded(entry.get("value", ""), known)
    if field := origin.get("fieldRef"):
        return _pod_field(pod, field["fieldPath"])
    if field := origin.get("resourceFieldRef"):
        return _resource_field(container, field)
    for reference_field, kind in _KINDS.items():
        if reference := origin.get(reference_field):
            return _key(kind, reference, pod, sources)
    raise ContainerNotConfigurable(
        f"variable {entry['name']}: valueFrom {', '.join(origin)} is not supported by the "
        "simulated kubelet; it knows fieldRef, configMapKeyRef and secretKeyRef"
    )


def _key(kind: str, reference: Object, pod: Object, sources: Sources) -> str | None:
    found = _source(kind, reference, sources)
    if found is not None and reference["key"] in found:
        return found[reference["key"]]
    if reference.get("optional"):
        return None
    namespace = pod["metadata"]["namespace"]
    raise ContainerNotConfigurable(
        f"couldn't find key {reference['key']} in {kind} {namespace}/{reference.get('name', '')}"
    )


def _pod_field(pod: Object, path: str) -> str:
    metadata, spec = pod["metadata"], pod["spec"]
    if match := _MAP_ENTRY.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": POD_IP,
        "status.podIPs": POD_IP,
        "status.hostIP": POD_IP,
        "status.hostIPs": POD_IP,
    }
    if path not in fields:
        raise ContainerNotConfigurable(f"unsupported fieldPath: {path}")
    return str(fields[path])


def _resource_field(container: Object, field: Object) -> str:
    raise ContainerNotConfigurable(
        f"container {container['name']}: resourceFieldRef {field.get('resource')} is not "
        "supported by the simulated kubelet, which limits neither CPU nor memory"
    )
