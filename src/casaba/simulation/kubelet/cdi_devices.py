"""From CDI ids to what a container is given (Container Device Interface 0.5 to 1.0). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.errors import CasabaError


class UnresolvableDevices(CasabaError):
    """Ids that no spec defines; the message is a container runtime's."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A path of the host at a path in the container."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, kw_only=True)
class DeviceNode:
    """A device of the host at a path in the container."""

    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class ContainerEdits:
    """All that the devices of one container add to it, in order."""

    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    hooks: tuple[str, ...] = ()
    """Programs that a container runtime would run; they are not run here."""

    def __add__(self, other: "ContainerEdits") -> "ContainerEdits":
        """These, then the other's. Of two mounts on one path the last counts, as in a runtime."""
        mounts = {mount.target: mount for mount in (*self.mounts, *other.mounts)}
        return ContainerEdits(
            environment=(*self.environment, *other.environment),
            mounts=tuple(mounts.values()),
            device_nodes=tuple(dict.fromkeys((*self.device_nodes, *other.device_nodes))),
            hooks=tuple(dict.fromkeys((*self.hooks, *other.hooks))),
        )


@dataclass(frozen=True)
class _Device:
    spec: int
    """Which spec it comes from: a spec's own edits are applied once."""
    edits: ContainerEdits
    of_spec: ContainerEdits


class CdiDevices:
    """The devices of all specs, folder by folder; the later folder's device wins.

    Two specs of one folder that define the same device take it from each other, as in the CDI
    library: it is then unresolvable. Only for specs that `is_spec` accepts.
    """

    def __init__(self, folders: Iterable[Sequence[Mapping[str, Any]]]) -> None:
        self._devices: dict[str, _Device] = {}
        number = 0
        for specs in folders:
            found: dict[str, _Device | None] = {}
            for spec in specs:
                number += 1
                for name, device in _devices(spec, number):
                    found[name] = None if name in found else device
            self._take(found)

    def _take(self, found: Mapping[str, _Device | None]) -> None:
        for name, device in found.items():
            if device is None:
                self._devices.pop(name, None)
            else:
                self._devices[name] = device

    def edits(self, ids: Iterable[str]) -> ContainerEdits:
        """The edits of these devices together; raises UnresolvableDevices."""
        wanted = tuple(dict.fromkeys(ids))
        if unknown := [id_ for id_ in wanted if id_ not in self._devices]:
            raise UnresolvableDevices(
                "failed to create containerd container: CDI device injection failed: "
                f"unresolvable CDI devices {', '.join(unknown)}"
            )
        edits, applied = ContainerEdits(), set[int]()
        for device in (self._devices[id_] for id_ in wanted):
            if device.spec not in applied:
                applied.add(device.spec)
                edits += device.of_spec
            edits += device.edits
        return edits


def is_spec(document: object) -> bool:
    """Whether a document has the form of a CDI spec, as far as it is read here."""
    try:
        return isinstance(document, dict) and bool(list(_devices(document, 0)))
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


def _devices(spec: Mapping[str, Any], number: int) -> Iterable[tuple[str, _Device]]:
    of_spec = _edits(spec.get("containerEdits") or {})
    for device in spec["devices"]:
        edits = _edits(device.get("containerEdits") or {})
        yield f"{spec['kind']}={device['name']}", _Device(number, edits, of_spec)


def _edits(edits: Mapping[str, Any]) -> ContainerEdits:
    return ContainerEdits(
        environment=tuple(_assignment(text) for text in edits.get("env") or ()),
        mounts=tuple(map(_mount, edits.get("mounts") or ())),
        device_nodes=tuple(map(_node, edits.get("deviceNodes") or ())),
        hooks=tuple(" ".join(_hook(hook)) for hook in edits.get("hooks") or ()),
    )


def _assignment(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _mount(mount: Mapping[str, Any]) -> Mount:
    return Mount(
        source=str(mount["hostPath"]),
        target=str(mount["containerPath"]),
        read_only="ro" in (mount.get("options") or ()),
    )


def _node(node: Mapping[str, Any]) -> DeviceNode:
    path = str(node["path"])
    return DeviceNode(source=str(node.get("hostPath") or path), target=path)


def _hook(hook: Mapping[str, Any]) -> Sequence[str]:
    """The words of a hook's command; the first argument repeats the program."""
    return (str(hook["path"]), *map(str, (hook.get("args") or ())[1:]))
