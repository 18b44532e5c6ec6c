"""The chart's alerts, as Prometheus is given them."""

from __future__ import annotations

from typing import Any

from tests.e2e.charts import rendered
from tests.e2e.releases import NAMESPACE


def alert_rules(*, monitor: bool = True) -> dict[str, Any]:
    """A rule file; `monitor`: whether the controller tells what is allocated."""
    values = {"monitor": {"enabled": monitor, "prometheusRule": {"enabled": True}}}
    (rule,) = rendered(NAMESPACE, "monitoring/prometheusrule.yaml", values=values)
    return dict(rule["spec"])


def alerts_of(rules: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for group in rules["groups"] for rule in group["rules"]]
