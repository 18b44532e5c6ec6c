"""A pod as JSON, of which anything may be missing or wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from casaba.policy.convert.refusals import MALFORMED, PodRefused, shown
from casaba.policy.convert.request_names import is_label

Object = Mapping[str, Any]

_CONTAINER_LISTS = ("containers", "initContainers")
ALL_LISTS = (*_CONTAINER_LISTS, "ephemeralContainers")


class Role(Enum):
    """When a container runs."""

    APP = "container"
    SIDECAR = "sidecar"
    """An init container that restarts always and runs beside all others (KEP-753)."""
    INIT = "init container"


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container and where it stands."""

    pointer: str
    """JSON pointer (RFC 6901)."""
    field: str
    """The list in the spec."""
    index: int
    """Its place in that list."""
    name: str
    role: Role
    content: Object

    @property
    def resources(self) -> Object:
        """What it asks for; empty if that is no object."""
        return mapping(self.content.get("resources"))

    @cached_property
    def environment(self) -> Object:
        """The entries of its variables by name; the last one counts, as in the kubelet."""
        entries = objects(self.content.get("env"))
        return {name: one for one in entries if isinstance(name := one.get("name"), str)}

    @property
    def is_privileged(self) -> bool:
        """Whether it sees all devices of the host whatever it asks for."""
        return mapping(self.content.get("securityContext")).get("privileged") is True


def mapping(value: Any) -> Object:
    """The value, or an empty one if it is no object."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> tuple[Object, ...]:
    """The objects of a list; none if it is no list."""
    return tuple([one for one in value if isinstance(one, dict)]) if isinstance(value, list) else ()


def spec(pod: Object) -> Object:
    """The pod's spec."""
    return mapping(pod.get("spec"))


def labels(pod: Object) -> Object:
    """The pod's labels."""
    return mapping(mapping(pod.get("metadata")).get("labels"))


def annotations(pod: Object) -> Object:
    """The pod's annotations."""
    return mapping(mapping(pod.get("metadata")).get("annotations"))


def annotation(pod: Object, name: str) -> str:
    """An annotation without the blanks around it; empty if it is not there.

    Raises PodRefused for a value that is no text.
    """
    value = annotations(pod).get(name, "")
    if not isinstance(value, str):
        raise PodRefused(
            f"annotation {name}: {shown(value)} is no text; write it in quotes", code=MALFORMED
        )
    return value.strip()


def containers(pod: Object) -> tuple[Container, ...]:
    """Containers, then init containers and sidecars, in the order of the spec."""
    return tuple(one for field in _CONTAINER_LISTS for one in _listed(pod, field))


def every_container(pod: Object) -> tuple[Container, ...]:
    """As `containers`, with the ephemeral ones, which may ask for nothing."""
    return tuple(one for field in ALL_LISTS for one in _listed(pod, field))


def _listed(pod: Object, field: str) -> Iterator[Container]:
    entries = spec(pod).get(field)
    for index, content in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(content, dict):
            yield Container(
                pointer=f"/spec/{field}/{index}",
                field=field,
                index=index,
                name=_name(content),
                role=_role(field, content),
                content=content,
            )


def _name(content: Object) -> str:
    name = content.get("name")
    return name if isinstance(name, str) else ""


def _role(field: str, content: Object) -> Role:
    if field != "initContainers":
        return Role.APP
    return Role.SIDECAR if content.get("restartPolicy") == "Always" else Role.INIT


def described(container: Container) -> str:
    """A container for a message, by its place if its name is none."""
    named = is_label(container.name)
    place = container.name if named else container.pointer.removeprefix("/spec/")
    return f"{container.role.value} {place}"
