"""Prometheus' text forms of metrics: 0.0.4, and OpenMetrics 1.0 without its end line.

prometheus-client renders a sample in tens of microseconds, which is too slow for a node with
hundreds of slices; what is read anew for each scrape is rendered here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Sample = tuple[tuple[str, ...], float]
"""The values of the family's labels, and the value."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """All samples of one metric."""

    name: str
    """A counter's without `_total`, which only its samples have."""
    kind: Literal["gauge", "counter"]
    help: str
    """One line without backslashes."""
    labels: tuple[str, ...]
    samples: Sequence[Sample]


def render(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """The text of all families; one without samples is only announced."""
    lines = [line for family in families for line in _lines(family, openmetrics)]
    return "".join(lines).encode()


def _lines(family: Family, openmetrics: bool) -> Iterator[str]:
    sample_name = f"{family.name}_total" if family.kind == "counter" else family.name
    name = family.name if openmetrics else sample_name
    yield f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
    pattern = _pattern(sample_name, family.labels)
    for values, number in family.samples:
        yield pattern % (*_escaped(values), number)


def _pattern(name: str, labels: tuple[str, ...]) -> str:
    if not labels:
        return f"{name} %s\n"
    told = ",".join(f'{label}="%s"' for label in labels)
    return f"{name}{{{told}}} %s\n"


def _escaped(values: tuple[str, ...]) -> tuple[str, ...]:
    joined = "".join(values)
    if "\\" not in joined and '"' not in joined and "\n" not in joined:
        return values
    return tuple(
        value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for value in values
    )
