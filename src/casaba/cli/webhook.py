"""`casaba webhook`: flags and environment to settings, signals to a clean end."""

import argparse
import asyncio
import asyncio.sslproto
import contextlib
import ctypes
import gc
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from casaba.cli.exits import exit_code_of
from casaba.cli.logs import log_to_stderr
from casaba.errors import InvalidInput
from casaba.model.quantity import parse
from casaba.settings.conversion import CORE_POLICIES, ConversionSettings
from casaba.settings.webhook import WebhookSettings

_GC_THRESHOLDS = (50_000, 50, 1000)
"""What is decoded lives for one review or for long; cycles are rare."""

_TLS_BUFFER_BYTES = 32 * 1024
"""Of each connection; asyncio's own is eight times that."""

_M_ARENA_MAX = -8
_ARENAS = 2
"""glibc's malloc keeps a heap per thread otherwise (mallopt(3))."""


def main(arguments: Sequence[str]) -> int:
    """Run the webhook; returns the exit code."""
    flags = _parser().parse_args(arguments)
    log_to_stderr(flags.log_level)
    _spare_memory()
    return exit_code_of("webhook", lambda: asyncio.run(_until_signal(settings_from(flags))))


def _spare_memory() -> None:
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


async def _until_signal(settings: WebhookSettings) -> None:
    from casaba.services.webhook.main import run_webhook

    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await run_webhook(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba webhook", description="Turn classic GPU pods into pods with claims."
    )
    _add_server_flags(parser.add_argument)
    _add_conversion_flags(parser.add_argument)
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("--log-level", default="info", choices=levels)
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
