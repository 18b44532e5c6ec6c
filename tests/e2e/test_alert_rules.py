"""Each alert of the chart fires when it has to, and only then: promtool's own tests of rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.prometheus import promtool
from tests.e2e.alerts import alert_rules, alerts_of

POD = 'namespace="default",pod="p",container="c"'
SLOW = {"5": "0x60", "10": "0+1x60", "+Inf": "0+1x60"}
FIRES: dict[str, dict[str, str]] = {
    "CasabaGuardNotAlive": {f"casaba_guard_alive{{{POD}}}": "0x60"},
    "CasabaForeignProcess": {'casaba_card_foreign_processes{node="n",gpu="g"}': "1x60"},
    "CasabaAccountingDamaged": {f"casaba_slice_accounting_damaged{{{POD}}}": "1x60"},
    "CasabaCardUnhealthy": {'casaba_card_healthy{node="n",gpu="g",device="d"}': "0x60"},
    "CasabaNodeOffersNothing": {'casaba_published_devices{node="n"}': "0x60"},
    "CasabaAgentProblem": {'casaba_agent_problem{node="n",reason="r"}': "1x60"},
    "CasabaNotRegistered": {'casaba_kubelet_registered{node="n"}': "0x60"},
    "CasabaPrepareErrors": {'casaba_prepare_errors_total{node="n",reason="host"}': "0+1x60"},
    "CasabaPrepareSlow": {
        f'casaba_prepare_seconds_bucket{{node="n",outcome="ok",le="{limit}"}}': values
        for limit, values in SLOW.items()
    },
    "CasabaClaimsPending": {'casaba_claims{state="pending"}': "1x60"},
    "CasabaLostShares": {"casaba_lost_shares": "1x60"},
    "CasabaNoLeader": {"casaba_controller_leader": "0x60"},
    "CasabaWebhookFails": {
        'casaba_webhook_reviews_total{path="/mutate",operation="CREATE",outcome="failed"}': "0+1x60"
    },
    "CasabaCertificateExpires": {
        'casaba_webhook_certificate_expiry_timestamp_seconds{job="w"}': "86400x60"
    },
    "CasabaCertificateNotTaken": {"casaba_webhook_certificate_swap_errors_total": "0x30 1x30"},
    "CasabaMemoryRefused": {f"casaba_refusals_total{{{POD}}}": "0x35 1x25"},
}
"""What makes each alert fire by the 40th minute, in promtool's notation, minute by minute."""

QUIET = {
    f"casaba_guard_alive{{{POD}}}": "1x60",
    'casaba_card_foreign_processes{node="n",gpu="g"}': "0x60",
    'casaba_card_healthy{node="n",gpu="g",device="d"}': "1x60",
    'casaba_published_devices{node="n"}': "1x60",
    'casaba_kubelet_registered{node="n"}': "1x60",
    'casaba_prepare_errors_total{node="n",reason="host"}': "3x60",
    'casaba_claims{state="pending"}': "0x60",
    "casaba_lost_shares": "0x60",
    "casaba_controller_leader": "1x60",
    'casaba_webhook_certificate_expiry_timestamp_seconds{job="w"}': "8640000x60",
    "casaba_webhook_certificate_swap_errors_total": "1x60",
    f"casaba_refusals_total{{{POD}}}": "1x60",
}


def test_promtool_takes_the_alerts_and_each_fires(tmp_path: Path) -> None:
    rules = alert_rules()
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    checked = promtool("check", "rules", "--lint=all", str(tmp_path / "rules.json"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert set(FIRES) == {alert["alert"] for alert in alerts_of(rules)}
    tests = [
        *(minutes(QUIET | series, alert, 1) for alert, series in FIRES.items()),
        *(minutes(QUIET, alert, 0) for alert in FIRES),
    ]
    told = {"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.json").write_text(json.dumps(told))
    done = promtool("test", "rules", str(tmp_path / "tests.json"))
    assert done.returncode == 0, done.stdout + done.stderr


def minutes(series: dict[str, str], alert: str, count: int) -> dict[str, Any]:
    """How often an alert fires in the 40th minute of these series."""
    fired = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    return {
        "name": f"{alert} {count}",
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {"expr": fired, "eval_time": "40m", "exp_samples": [{"labels": "{}", "value": count}]}
        ],
    }
