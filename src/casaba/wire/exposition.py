"""Prometheus' text forms of metrics: 0.0.4, and OpenMetrics 1.0 without its end line.

prometheus-client renders a sample in tens of microseconds, which is too slow for a node with
hundreds of slices; what is read anew for each scrape is rendered here.
"""

from collections.abc import Iterable, Sequence
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


def known_samples(samples: Iterable[tuple[tuple[str, ...], float | None]]) -> list[Sample]:
    """Those that have a value."""
    return [(values, number) for values, number in samples if number is not None]


def render(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """The text of all families; one without samples is only announced."""
    texts: dict[tuple[str, ...], _LabelTexts] = {}
    lines: list[str] = []
    for family in families:
        known = texts.get(family.labels)
        if known is None:
            known = texts[family.labels] = _LabelTexts(family.labels)
        lines += _lines(family, known, openmetrics)
    return "".join(lines).encode()


class _LabelTexts(dict[tuple[str, ...], str]):
    """What stands in braces, by the labels' values: many families tell of the same things."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        told = ",".join(f'{label}="%s"' for label in labels)
        self._pattern = f"{{{told}}}" if labels else ""

    def __missing__(self, values: tuple[str, ...]) -> str:
        text = self[values] = self._pattern % _escaped(values)
        return text


def _lines(family: Family, texts: _LabelTexts, openmetrics: bool) -> list[str]:
    sample_name = f"{family.name}_total" if family.kind == "counter" else family.name
    name = family.name if openmetrics else sample_name
    head = f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
    return [
        head,
        *[f"{sample_name}{texts[values]} {number}\n" for values, number in family.samples],
    ]


def _escaped(values: tuple[str, ...]) -> tuple[str, ...]:
    joined = "".join(values)
    if "\\" not in joined and '"' not in joined and "\n" not in joined:
        return values
    return tuple(
        value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for value in values
    )
