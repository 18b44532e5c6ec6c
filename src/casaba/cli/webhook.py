"""`casaba webhook`: flags and environment to settings, signals to a clean end."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from casaba.cli.daemon import add_log_level, run_daemon
from casaba.errors import InvalidInput
from casaba.model.quantity import parse
from casaba.settings.conversion import CORE_POLICIES, ConversionSettings
from casaba.settings.webhook import WebhookSettings


def main(arguments: Sequence[str]) -> int:
    """Run the webhook; returns the exit code."""
    flags = _parser().parse_args(arguments)
    return run_daemon("webhook", flags.log_level, lambda: _work(settings_from(flags)))


async def _work(settings: WebhookSettings) -> None:
    from casaba.services.webhook.main import run_webhook

    await run_webhook(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba webhook", description="Turn classic GPU pods into pods with claims."
    )
    _add_server_flags(parser.add_argument)
    _add_conversion_flags(parser.add_argument)
    add_log_level(parser)
    return parser


def _add_server_flags(add: Callable[..., argparse.Action]) -> None:
    own = WebhookSettings()
    add("--kubeconfig", type=Path, help="default: the pod's service account")
    add("--address", default=own.address, help="HTTPS; default: %(default)s")
    add("--metrics-address", default=own.metrics_address, help="HTTP; default: %(default)s")
    add(
        "--certificate-dir",
        type=Path,
        default=Path(os.environ.get("CERTIFICATE_DIR", own.certificate_dir)),
        help="with tls.crt and tls.key; default: %(default)s",
    )
    add("--tls-minimum", choices=("1.2", "1.3"), default=own.tls_minimum)
    add("--certificate-check", type=float, default=own.certificate_check_s, help="seconds")
    add("--review-limit", type=float, default=own.review_limit_s, help="seconds")
    add("--body-limit", default=str(own.body_limit_bytes), help="quantity of bytes")
    add("--drain", type=float, default=own.drain_s, help="seconds")


def _add_conversion_flags(add: Callable[..., argparse.Action]) -> None:
    own = ConversionSettings()
    add("--resource-name", default=own.count_resource)
    add("--resource-mem", default=own.memory_resource)
    add("--resource-mem-percentage", default=own.percentage_resource)
    add("--resource-cores", default=own.cores_resource)
    add("--resource-priority", default=own.priority_resource)
    add("--default-gpu-num", type=int, default=own.default_count)
    add("--default-memory", type=int, default=own.default_memory_mib, help="MiB; 0: all of a card")
    add("--default-cores", type=int, default=own.default_cores_percent, help="percent; 0: no cap")
    add("--memory-factor", type=int, default=own.memory_factor)
    add("--gpu-core-policy", choices=CORE_POLICIES, default=own.core_policy)
    add("--refuse-oversized", action="store_true", help="refuse memory that no visible card has")
    add(
        "--policies-as-constraints",
        action="store_true",
        help="let pods wait for what scheduling annotations ask",
    )


def settings_from(flags: argparse.Namespace) -> WebhookSettings:
    """The settings that the flags describe; raises InvalidInput."""
    for name in ("certificate_check", "review_limit"):
        if not 0 < getattr(flags, name) < float("inf"):
            raise InvalidInput(f"--{name.replace('_', '-')}: give seconds, more than 0")
    if not 0 <= flags.drain < float("inf"):
        raise InvalidInput("--drain: give seconds, 0 or more")
    return WebhookSettings(
        kubeconfig=flags.kubeconfig,
        address=flags.address,
        metrics_address=flags.metrics_address,
        certificate_dir=flags.certificate_dir,
        tls_minimum=flags.tls_minimum,
        certificate_check_s=flags.certificate_check,
        review_limit_s=flags.review_limit,
        body_limit_bytes=parse(flags.body_limit),
        drain_s=flags.drain,
        conversion=_conversion_from(flags),
    )


def _conversion_from(flags: argparse.Namespace) -> ConversionSettings:
    return ConversionSettings(
        count_resource=flags.resource_name,
        memory_resource=flags.resource_mem,
        percentage_resource=flags.resource_mem_percentage,
        cores_resource=flags.resource_cores,
        priority_resource=flags.resource_priority,
        default_count=flags.default_gpu_num,
        default_memory_mib=flags.default_memory,
        default_cores_percent=flags.default_cores,
        memory_factor=flags.memory_factor,
        core_policy=flags.gpu_core_policy,
        refuse_oversized=flags.refuse_oversized,
        policies_as_constraints=flags.policies_as_constraints,
    )
