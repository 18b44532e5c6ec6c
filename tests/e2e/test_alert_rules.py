"""Each alert of the chart fires when it has to, and only then: promtool's own tests of rules."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from tests.e2e.alerts import alert_rules, alerts_of
from tests.e2e.rule_tests import Object, Series, check_rules, handed_over, rule_test

POD = 'namespace="default",pod="p",container="c"'
SLICE = f'{POD},claim="k",request="r"'
SHARED = 'namespace="default",claim="k",request="r"'
CARDS = 'hami_gpu_memory_limit_bytes{node="n",device_uuid="g"}'
OFFERED = 'casaba_published_devices{node="n"}'
TARGET = 'up{job="hami-dra-driver-kubelet-plugin",node="n"}'
PREPARE_ERRORS = 'casaba_prepare_errors_total{node="n",reason="host"}'
REVIEWS_FAILED = (
    'casaba_webhook_reviews_total{path="/mutate",operation="CREATE",outcome="failed",job="w"}'
)
SLOW = {"5": "0x60", "10": "0+1x60", "+Inf": "0+1x60"}

FIRES: dict[str, Series] = {
    "CasabaGuardNotAlive": {f'casaba_guard_alive{{node="n",{POD}}}': "0x60"},
    "CasabaForeignProcess": {'casaba_card_foreign_processes{node="n",gpu="g",device="d"}': "1x60"},
    "CasabaPodsNotTold": {'casaba_pods_told{node="n"}': "0x60"},
    "CasabaAccountingDamaged": {f'casaba_slice_accounting_damaged{{node="n",{SLICE}}}': "1x60"},
    "CasabaCardUnhealthy": {'casaba_card_healthy{node="n",gpu="g",device="d"}': "0x60"},
    "CasabaNodeOffersNothing": {OFFERED: "0x60"},
    "CasabaAgentGone": {OFFERED: "1x5 stale", CARDS: "1x5 stale", TARGET: "1x5 0x54"},
    "CasabaAgentProblem": {'casaba_agent_problem{node="n",reason="r"}': "1x60"},
    "CasabaNotRegistered": {'casaba_kubelet_registered{node="n"}': "0x60"},
    "CasabaPrepareErrors": {PREPARE_ERRORS: "0+1x60"},
    "CasabaPrepareSlow": {
        f'casaba_prepare_seconds_bucket{{node="n",outcome="ok",le="{limit}"}}': values
        for limit, values in SLOW.items()
    },
    "CasabaClaimsPending": {'casaba_claims{state="pending"}': "1x60"},
    "CasabaLostShares": {"casaba_lost_shares": "1x60"},
    "CasabaNoLeader": {"casaba_controller_leader": "0x60"},
    "CasabaWebhookFails": {REVIEWS_FAILED: "0+1x60"},
    "CasabaCertificateExpires": {
        'casaba_webhook_certificate_expiry_timestamp_seconds{job="w"}': "86400x60"
    },
    "CasabaCertificateNotTaken": {
        'casaba_webhook_certificate_swap_errors_total{job="w"}': "0x30 1x29"
    },
    "CasabaMemoryRefused": {f"casaba_refusals_total{{{SLICE}}}": "0x36 1x23"},
}
"""What makes each alert fire by the 40th minute."""

FIRES_TOO: tuple[tuple[str, Series], ...] = (
    ("CasabaAgentGone", {OFFERED: "1x5 stale", TARGET: "1x5 stale"}),  # the node is cut off
    ("CasabaPrepareErrors", {PREPARE_ERRORS: " ".join(f"{count}x2" for count in range(20))}),
    ("CasabaMemoryRefused", {f"casaba_refusals_total{{{SHARED}}}": "0x36 1x23"}),
)
"""Further cases."""

QUIET: Series = {
    f'casaba_guard_alive{{node="n",{POD}}}': "1x60",
    'casaba_card_foreign_processes{node="n",gpu="g",device="d"}': "0x60",
    'casaba_pods_told{node="n"}': "1x60",
    'casaba_card_healthy{node="n",gpu="g",device="d"}': "1x60",
    OFFERED: "1x60",
    CARDS: "1x60",
    TARGET: "1x60",
    'up{job="hami-dra-driver-kubelet-plugin",instance="of_an_unknown_node"}': "1x60",
    'casaba_kubelet_registered{node="n"}': "1x60",
    PREPARE_ERRORS: "3x60",
    'casaba_claims{state="unused"}': "3x60",
    'casaba_claims{state="pending"}': "0x60",
    "casaba_lost_shares": "0x60",
    "casaba_controller_leader": "1x60",
    'casaba_webhook_certificate_expiry_timestamp_seconds{job="w"}': "8640000x60",
    'casaba_webhook_certificate_swap_errors_total{job="w"}': "1x60",
    f"casaba_refusals_total{{{SLICE}}}": "1x60",
}

PASSES: tuple[tuple[str, Series], ...] = (
    ("CasabaPrepareErrors", {PREPARE_ERRORS: "0x20 1x39"}),
    ("CasabaPrepareErrors", {PREPARE_ERRORS: "0x20 1x12 2x26"}),
    ("CasabaWebhookFails", {REVIEWS_FAILED: "0x20 1x39"}),
    ("CasabaAgentGone", {OFFERED: "1x20 _x4 1x35", TARGET: "1x20 0x3 1x35"}),
    ("CasabaAgentGone", {OFFERED: "1x20 stale", CARDS: "1x20 stale", TARGET: "1x20 stale"}),
)
"""What comes once, is soon over, or is a node that was taken away: no alert ever fires."""

OF_THE_CONTROLLER = {"CasabaClaimsPending", "CasabaLostShares", "CasabaNoLeader"}


def test_promtool_takes_the_alerts_and_each_fires(tmp_path: Path) -> None:
    rules = alert_rules()
    assert set(FIRES) == {alert["alert"] for alert in alerts_of(rules)}
    check_rules(
        tmp_path,
        rules,
        [
            *(in_minute_40(QUIET | series, alert, 1) for alert, series in FIRES.items()),
            *(in_minute_40(QUIET | series, alert, 1) for alert, series in FIRES_TOO),
            *(in_minute_40(QUIET, alert, 0) for alert in FIRES),
        ],
    )


def test_an_alert_goes_on_when_an_agent_or_a_leader_is_replaced(tmp_path: Path) -> None:
    overlapping = ((alert, handed_over(series, 37, 39)) for alert, series in FIRES.items())
    with_a_gap = ((alert, handed_over(FIRES[alert], 39, 37)) for alert in OF_THE_CONTROLLER)
    replaced = [
        [in_minute_40(series, alert, 1), began_once(series, alert)]
        for alert, series in itertools.chain(overlapping, with_a_gap)
    ]
    check_rules(tmp_path, alert_rules(), [test for tests in replaced for test in tests])


def test_what_passes_by_itself_is_no_alert(tmp_path: Path) -> None:
    tests = [never_fires(QUIET | series, alert) for alert, series in PASSES]
    check_rules(tmp_path, alert_rules(), tests)


def test_nobody_misses_a_controller_that_tells_nothing(tmp_path: Path) -> None:
    rules = alert_rules(monitor=False)
    assert {one["alert"] for one in alerts_of(rules)} == set(FIRES) - OF_THE_CONTROLLER
    told = {key: values for key, values in QUIET.items() if "controller" not in key}
    tests = [never_fires(told, alert) for alert in FIRES]
    check_rules(tmp_path, rules, tests)


def test_an_alert_names_the_claim_where_there_is_no_pod(tmp_path: Path) -> None:
    tests = [
        summary(labels, "CasabaMemoryRefused", "casaba_refusals_total", whom)
        for labels, whom in ((SLICE, "default/p"), (SHARED, "default/k"))
    ]
    check_rules(tmp_path, alert_rules(), tests)


def in_minute_40(series: Series, alert: str, count: int) -> Object:
    """How often an alert fires then."""
    return asked(series, alert, f"count({firing(alert)}) or vector(0)", "40m", count)


def never_fires(series: Series, alert: str) -> Object:
    """In no minute of the hour."""
    return asked(series, alert, f"count_over_time({firing(alert)}[1h]) or vector(0)", "1h", 0)


def began_once(series: Series, alert: str) -> Object:
    """That the alert of the 45th minute is the one of the 35th."""
    since = f'changes(ALERTS_FOR_STATE{{alertname="{alert}"}}[10m])'
    return asked(series, alert, f"sum({since}) + 0 * count({firing(alert)})", "45m", 0)


def firing(alert: str) -> str:
    return f'ALERTS{{alertname="{alert}",alertstate="firing"}}'


def asked(series: Series, alert: str, expression: str, at: str, value: int) -> Object:
    """One test: what an expression is at a time."""
    told = {"expr": expression, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
    return {**rule_test(series, f"{alert}: {series}"), "promql_expr_test": [told]}


def summary(labels: str, alert: str, name: str, begins: str) -> Object:
    """That an alert's summary begins with whom it concerns."""
    (rule,) = (one for one in alerts_of(alert_rules()) if one["alert"] == alert)
    annotations = rule["annotations"]
    text = re.sub(r"^.*}}", begins, annotations["summary"])
    expected = {
        "exp_labels": {**rule["labels"], **kept(labels)},
        "exp_annotations": {**annotations, "summary": text},
    }
    told = {"eval_time": "40m", "alertname": alert, "exp_alerts": [expected]}
    return {**rule_test({f"{name}{{{labels}}}": "0x36 1x23"}, labels), "alert_rule_test": [told]}


def kept(labels: str) -> dict[str, str]:
    """The labels that the alert has too."""
    found = dict(re.findall(r'(\w+)="(\w+)"', labels))
    found.pop("request")
    return found
