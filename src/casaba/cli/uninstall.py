"""`casaba uninstall`: what the chart's hooks run before and after Helm deletes its objects."""

import argparse
import asyncio
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from casaba.cli.exits import exit_code_of
from casaba.errors import CasabaError, InvalidInput
from casaba.settings.uninstall import HelmRelease, UninstallSettings

_DEFAULT_NAMESPACE = "hami-system"


def main(arguments: Sequence[str]) -> int:
    """End the agents and have their nodes cleaned, or delete leftovers; returns the exit code."""
    flags = _parser().parse_args(arguments)
    return exit_code_of("uninstall", lambda: asyncio.run(_until_signal(flags)))


class _Ended(CasabaError):
    """Somebody ended us in the middle of it."""

    exit_code = 143  # as of shells after SIGTERM


async def _until_signal(flags: argparse.Namespace) -> None:
    from casaba.services.uninstall.leftovers import delete_leftovers
    from casaba.services.uninstall.nodes import clean_nodes

    settings = settings_from(flags)
    work = delete_leftovers if flags.leftovers else clean_nodes
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await work(settings, partial(print, flush=True))
    except asyncio.CancelledError as error:
        raise _Ended("ended by a signal; started again it goes on from here") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="casaba uninstall",
        description="Take away what Helm did not make: with --leftovers from the cluster, else "
        "from the nodes.",
    )
    own = UninstallSettings(namespace="")
    add = parser.add_argument
    add("--namespace", default=os.environ.get("POD_NAMESPACE") or _DEFAULT_NAMESPACE)
    named = HelmRelease()
    add("--release", default=named.name, help="what Helm calls it, for what people are told")
    add("--revision", default=named.revision, help="of the release, as helm history counts them")
    add("--kubeconfig", type=Path, help="default: the pod's service account")
    add("--agent", default=own.agent, help="the agents' DaemonSet, default: %(default)s")
    add("--cleaner", type=Path, default=own.cleaner, help="file with the DaemonSet that cleans")
    add("--timeout-s", type=float, default=own.timeout_s, help="for all nodes together, seconds")
    add("--leftovers", action="store_true", help="templates, slices, and what the next two name")
    add("--lease", action="append", default=[], help="delete this one; may be given again")
    add("--secret", action="append", default=[], help="delete this one; may be given again")
    return parser


def settings_from(flags: argparse.Namespace) -> UninstallSettings:
    """The settings that the flags describe; raises InvalidInput."""
    if not flags.timeout_s > 0:
        raise InvalidInput(f"--timeout-s {flags.timeout_s:g}: give more than 0 seconds")
    if not flags.leftovers and (flags.lease or flags.secret):
        raise InvalidInput("--lease and --secret: they belong to --leftovers")
    return UninstallSettings(
        namespace=flags.namespace,
        release=HelmRelease(name=flags.release, revision=flags.revision, namespace=flags.namespace),
        kubeconfig=flags.kubeconfig,
        agent=flags.agent,
        cleaner=flags.cleaner,
        timeout_s=flags.timeout_s,
        leases=tuple(flags.lease),
        secrets=tuple(flags.secret),
    )
