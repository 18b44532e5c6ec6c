"""Each value that values.yaml documents changes what it says it changes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.chart.rendering import CERT_MANAGER, CHART, NAMESPACE, Object, rendered
from tests.chart.value_cases import (
    CASES,
    CONTROLLER,
    CUSTOM,
    MANAGED,
    WEBHOOK,
    Check,
    excluded,
    flags,
    hook,
)
from tests.cluster.helm import helm


@pytest.mark.parametrize(
    ("sets", "check"), CASES, ids=lambda v: v[-1] if isinstance(v, tuple) else ""
)
def test_a_value_does_what_it_says(sets: tuple[str, ...], check: Check) -> None:
    assert check(rendered(*sets))
    try:
        before = check(rendered())
    except (AssertionError, KeyError, IndexError, ValueError):
        before = False
    assert not before


def test_each_value_is_tried() -> None:
    tried = {one.partition("=")[0] for sets, _ in CASES for one in sets}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    missing = [path for path in _leaves(values) if not any(_covers(one, path) for one in tried)]
    assert missing == []


def _covers(tried: str, path: str) -> bool:
    return path == tried or path.startswith(f"{tried}.") or tried.startswith(f"{path}.")


def _leaves(values: Object, prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize(
    ("sets", "options", "maker"),
    [
        ((), (), "controller"),
        ((), (CERT_MANAGER,), "cert-manager"),
        ((MANAGED,), (), "cert-manager"),
        (("certs.certManager.enabled=false",), (CERT_MANAGER,), "controller"),
        (CUSTOM, (CERT_MANAGER,), "custom"),
    ],
    ids=str,
)
def test_one_makes_the_certificate(
    sets: tuple[str, ...], options: tuple[str, ...], maker: str
) -> None:
    chart = rendered(*sets, options=options)
    found = {
        "controller": chart.has("Job", "hami-dra-certificates"),
        "cert-manager": bool(chart.of("Certificate")),
        "custom": bool(chart.of("Secret")),
    }
    assert [name for name, there in found.items() if there] == [maker]
    configuration = chart.one("MutatingWebhookConfiguration", WEBHOOK)
    annotations = configuration["metadata"].get("annotations", {})
    assert ("cert-manager.io/inject-ca-from" in annotations) == (maker == "cert-manager")
    assert "caBundle" not in hook(chart)["clientConfig"]
    assert ("--no-certificates" in flags(chart, CONTROLLER)) == (maker != "controller")
    secrets = [
        rule
        for role in chart.of("Role")
        for rule in role["rules"]
        if "secrets" in rule["resources"]
    ]
    assert bool([rule for rule in secrets if "create" in rule["verbs"]]) == (maker == "controller")


def test_no_namespace_need_be_excluded() -> None:
    chart = rendered("webhook.config.scope.excludedNamespaces=null")
    assert excluded(chart) == [NAMESPACE]


def test_lint_finds_nothing() -> None:
    done = subprocess.run(
        [str(helm()), "lint", "--strict", "--quiet", str(CHART)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
