"""`casaba controller`: flags and environment to settings, signals to a clean end."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from casaba.cli.daemon import add_log_level, run_daemon
from casaba.errors import InvalidInput
from casaba.settings.controllers import (
    DAY_S,
    AllocationMetricsSettings,
    CertificateSettings,
    CollectionSettings,
    ControllerSettings,
    TrustSettings,
)

_TRUST_SECRET = (
    "with --no-certificates: let the webhooks trust this Secret's ca.crt, which somebody gives"
)

_DEFAULT_NAMESPACE = "hami-system"

Add = Callable[..., Any]


def main(arguments: Sequence[str]) -> int:
    """Run the controller, or only make certificates; returns the exit code."""
    flags = _parser().parse_args(arguments)
    return run_daemon("controller", flags.log_level, lambda: _work(flags, settings_from(flags)))


async def _work(flags: argparse.Namespace, settings: ControllerSettings) -> None:
    from casaba.services.controllers.main import make_certificates_once, run_controller

    if flags.certificates_once:
        await make_certificates_once(settings)
    else:
        await run_controller(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba controller",
        description="Collect unused templates, keep certificates, tell what is allocated.",
    )
    own = ControllerSettings(namespace="")
    add = parser.add_argument
    add("--namespace", default=os.environ.get("POD_NAMESPACE") or _DEFAULT_NAMESPACE)
    add("--pod-name", default=os.environ.get("POD_NAME"), help="gets the leader's label")
    add("--kubeconfig", type=Path, help="default: the pod's service account")
    add("--metrics-address", default=own.metrics_address, help="default: %(default)s")
    add("--lease-name", default=own.lease_name)
    add("--collect-after", type=float, default=own.collection.period_s, help="seconds")
    add(
        "--collect-settle",
        type=float,
        default=own.collection.settle_s,
        help="seconds; longer than a minute and an admission, or a pod can lose its template",
    )
    _add_certificates(add)
    _add_metrics(add)
    add_log_level(parser)
    return parser


def _add_certificates(add: Add) -> None:
    own = CertificateSettings()
    add("--no-certificates", action="store_true", help="cert-manager or somebody else makes them")
    add(
        "--certificates-once",
        action="store_true",
        help="make what is missing of them and end; for a Job before the installation",
    )
    add("--trust-secret", metavar="NAME", help=_TRUST_SECRET)
    add("--webhook-service", default=own.service, help="default: %(default)s")
    add("--cluster-domain", default=own.cluster_domain)
    add("--serving-secret", default=own.serving_secret, help="default: %(default)s")
    add("--authority-secret", default=own.authority_secret, help="default: %(default)s")
    add("--mutating-webhooks", default=",".join(own.mutating), help="names, by commas")
    add("--validating-webhooks", default=",".join(own.validating), help="names, by commas")
    add("--authority-days", type=float, default=own.authority_lifetime_s / DAY_S)
    add("--serving-days", type=float, default=own.serving_lifetime_s / DAY_S)
    add("--propagation", type=float, default=own.propagation_s, help="seconds")


def _add_metrics(add: Add) -> None:
    own = AllocationMetricsSettings()
    add(
        "--legacy-metrics",
        action=argparse.BooleanOptionalAction,
        default=own.legacy_dra_names,
        help="also the old names of hami-dra-monitor",
    )
    add(
        "--legacy-scheduler-metrics",
        action=argparse.BooleanOptionalAction,
        default=own.legacy_scheduler_names,
        help="also the old names of HAMi's scheduler",
    )
    add("--resource-name", default=own.resource_name, help="default: %(default)s")
    add("--resource-mem", default=own.memory_resource_name, help="default: %(default)s")
    add("--resource-cores", default=own.cores_resource_name, help="default: %(default)s")


def settings_from(flags: argparse.Namespace) -> ControllerSettings:
    """The settings that the flags describe; raises InvalidInput."""
    return ControllerSettings(
        namespace=flags.namespace,
        kubeconfig=flags.kubeconfig,
        pod_name=flags.pod_name,
        metrics_address=flags.metrics_address,
        lease_name=flags.lease_name,
        collection=CollectionSettings(period_s=flags.collect_after, settle_s=flags.collect_settle),
        certificates=None if flags.no_certificates else _certificates(flags),
        trust=_trust(flags),
        allocation_metrics=AllocationMetricsSettings(
            legacy_dra_names=flags.legacy_metrics,
            legacy_scheduler_names=flags.legacy_scheduler_metrics,
            resource_name=flags.resource_name,
            memory_resource_name=flags.resource_mem,
            cores_resource_name=flags.resource_cores,
        ),
    )


def _certificates(flags: argparse.Namespace) -> CertificateSettings:
    return CertificateSettings(
        service=flags.webhook_service,
        cluster_domain=flags.cluster_domain,
        serving_secret=flags.serving_secret,
        authority_secret=flags.authority_secret,
        mutating=_names(flags.mutating_webhooks),
        validating=_names(flags.validating_webhooks),
        authority_lifetime_s=flags.authority_days * DAY_S,
        serving_lifetime_s=flags.serving_days * DAY_S,
        propagation_s=flags.propagation,
    )


def _trust(flags: argparse.Namespace) -> TrustSettings | None:
    if not flags.trust_secret:
        return None
    if not flags.no_certificates:
        raise InvalidInput(
            f"--trust-secret {flags.trust_secret}: give --no-certificates too; certificates that "
            "are made here are trusted without it"
        )
    return TrustSettings(
        secret=flags.trust_secret,
        mutating=_names(flags.mutating_webhooks),
        validating=_names(flags.validating_webhooks),
        propagation_s=flags.propagation,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)
