"""What a claim's spec asks for, read from the JSON of any version of resource.k8s.io.

Anything may be wrong in it: what has another type than the API's counts as absent, since the API
server refuses it in its own words.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casaba.settings.host_paths import DRIVER_NAME

Object = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request without alternatives, or one alternative."""

    at: str
    """Path of its fields."""
    base: str
    """Name of the request."""
    alternative: str
    """Name of the alternative; empty if there are none."""
    form: Object
    """`exactly`, the alternative, or the request itself in v1beta1."""

    @property
    def name(self) -> str:
        """As results and lists of requests name it."""
        return f"{self.base}/{self.alternative}" if self.alternative else self.base

    @property
    def is_ours(self) -> bool:
        """Whether it names this driver's class, which has the driver's name."""
        return self.form.get("deviceClassName") == DRIVER_NAME

    @property
    def amounts(self) -> Object:
        """Capacity that is asked for, as it is written."""
        return object_of(object_of(self.form.get("capacity")).get("requests"))

    @property
    def count(self) -> int:
        """How many devices; for all of them: 1, since nobody knows."""
        count = self.form.get("count", 1)
        return count if isinstance(count, int) and not isinstance(count, bool) else 1

    @property
    def takes_all(self) -> bool:
        """Whether it asks for all devices of a node."""
        return bool(self.form.get("allocationMode") == "All")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A constraint or a config entry."""

    at: str
    form: Object

    @property
    def requests(self) -> frozenset[str]:
        """Whom it is for; empty: for all requests."""
        return frozenset(name for name in list_of(self.form.get("requests")) if _is_text(name))

    def is_for(self, asked: Asked) -> bool:
        """Whether it speaks of the request."""
        return not self.requests or bool(self.requests & {asked.base, asked.name})


@dataclass(frozen=True, kw_only=True)
class AskedDevices:
    """`spec.devices` of a claim."""

    requests: tuple[tuple[Asked, ...], ...]
    """For each request its alternatives, or the one thing that it asks for."""
    constraints: tuple[Entry, ...]
    config: tuple[Entry, ...]

    def ours(self) -> Iterator[Asked]:
        """All that names this driver's class."""
        return (asked for forms in self.requests for asked in forms if asked.is_ours)


def asked_devices(spec: Object, at: str) -> AskedDevices:
    """Read `spec`, whose path is `at`, of resource.k8s.io/v1, v1beta2 or v1beta1."""
    devices, at = object_of(spec.get("devices")), f"{at}.devices"
    return AskedDevices(
        requests=tuple(
            _forms(form, f"{at}.requests[{index}]")
            for index, form in _objects(devices.get("requests"))
        ),
        constraints=tuple(_entries(devices.get("constraints"), f"{at}.constraints")),
        config=tuple(_entries(devices.get("config"), f"{at}.config")),
    )


def _forms(request: Object, at: str) -> tuple[Asked, ...]:
    base = _text(request.get("name"))
    if "exactly" in request:
        form = object_of(request["exactly"])
        return (Asked(at=f"{at}.exactly", base=base, alternative="", form=form),)
    alternatives = tuple(_objects(request.get("firstAvailable")))
    if not alternatives:
        return (Asked(at=at, base=base, alternative="", form=request),)
    return tuple(
        Asked(
            at=f"{at}.firstAvailable[{index}]",
            base=base,
            alternative=_text(form.get("name")),
            form=form,
        )
        for index, form in alternatives
    )


def _entries(value: object, at: str) -> Iterable[Entry]:
    return (Entry(at=f"{at}[{index}]", form=form) for index, form in _objects(value))


def object_of(value: object) -> Object:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _objects(value: object) -> Iterator[tuple[int, Object]]:
    return ((index, form) for index, form in enumerate(list_of(value)) if isinstance(form, Mapping))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
