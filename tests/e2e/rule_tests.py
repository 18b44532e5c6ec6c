"""Promtool's own tests of rules and expressions: what it is given, minute by minute."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.cluster.prometheus import promtool

Series = dict[str, str]
"""Values by series, in promtool's notation, minute by minute."""
Object = dict[str, Any]


def check_rules(folder: Path, rules: Object, tests: Iterable[Object]) -> None:
    """Promtool takes the rules, and all tests of them come true."""
    (folder / "rules.json").write_text(json.dumps(rules))
    told = {
        "rule_files": ["rules.json"],
        "evaluation_interval": "1m",
        "fuzzy_compare": True,  # the last bits of rates
        "tests": list(tests),
    }
    (folder / "tests.json").write_text(json.dumps(told))
    for command in (
        ["check", "rules", "--lint=all", str(folder / "rules.json")],
        ["test", "rules", str(folder / "tests.json")],
    ):
        done = promtool(*command)
        assert done.returncode == 0, done.stdout + done.stderr


def rule_test(series: Series, name: str) -> Object:
    """A test that says nothing yet."""
    inputs = [{"series": key, "values": values} for key, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": inputs}


def handed_over(series: Series, begin: int, end: int) -> Series:
    """The same told by one target up to a minute, and from another on by the next."""
    found: Series = {}
    for key, values in series.items():
        minutes = list(_each_minute(values))
        first, second = (_with_label(key, f'instance="{one}"') for one in "ab")
        found[first] = " ".join([*minutes[:end], "stale"])
        found[second] = " ".join(["_"] * begin + minutes[begin:])
    return found


def _with_label(series: str, label: str) -> str:
    return f"{series[:-1]},{label}}}" if series.endswith("}") else f"{series}{{{label}}}"


def _each_minute(values: str) -> Iterator[str]:
    """Promtool's notation, written out."""
    for word in values.split():
        repeated = re.fullmatch(r"(\d+|_)(?:\+(\d+))?x(\d+)", word)
        if repeated is None:
            yield word
        elif repeated[1] == "_":
            yield from ["_"] * int(repeated[3])
        else:
            for step in range(int(repeated[3]) + 1):
                yield str(int(repeated[1]) + step * int(repeated[2] or 0))
