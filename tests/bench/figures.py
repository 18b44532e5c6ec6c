"""One measured figure, and how it is told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OUT = Path(__file__).parents[2] / "build" / "bench"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A value with its bound; lower is better unless `better` says otherwise."""

    name: str
    value: float
    unit: str
    bound: float
    better: str = "lower"

    @property
    def ok(self) -> bool:
        """Whether the value keeps its bound."""
        return self.value <= self.bound if self.better == "lower" else self.value >= self.bound

    def line(self) -> str:
        """One JSON object."""
        told = {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "bound": self.bound,
            "better": self.better,
            "ok": self.ok,
        }
        return json.dumps(told)


def tell(figures: Iterable[Figure]) -> bool:
    """Print each figure and append it to build/bench/NAME.jsonl; whether all keep their bounds."""
    OUT.mkdir(parents=True, exist_ok=True)
    all_ok = True
    for figure in figures:
        print(figure.line(), flush=True)
        with (OUT / f"{figure.name}.jsonl").open("a") as file:
            file.write(figure.line() + "\n")
        all_ok &= figure.ok
    return all_ok


def percentile(values: list[float], percent: float) -> float:
    """The nearest-rank percentile of some values."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]
