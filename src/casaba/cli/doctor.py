"""`casaba doctor`: what is wrong with this cluster or node, and what to do."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, CycloptsError, Parameter

from casaba.cli.doctor_view import print_lines, print_table, report
from casaba.cli.exits import exit_code_of
from casaba.errors import HostError, InvalidInput
from casaba.kube import KubeConfig, KubeConfigError, load_config
from casaba.policy.diagnosis import Finding, exit_code
from casaba.settings.doctor import DoctorSettings, Names
from casaba.settings.host_paths import HostPaths

app = App(name="casaba doctor", help="What is wrong, and what to do.", version_flags=[])

_THIS = "."
"""What `--node` means without a name; no node is called so."""

_defaults = DoctorSettings()
_paths = HostPaths()


@app.default
def doctor(
    *,
    node: str | None = None,
    preinstall: Annotated[bool, Parameter(negative=())] = False,
    preuninstall: Annotated[bool, Parameter(negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    kubeconfig: Path | None = None,
    namespace: str | None = None,
    node_label: str = "=".join(_defaults.names.node_label),
    resource_name: str = _defaults.names.resource,
    trial_namespace: str = _defaults.trial_namespace,
    limit: float = _defaults.look_s,
    driver_root: Path | None = None,
    host_root: Path = _defaults.host_root,
    kubelet_dir: Path = _paths.kubelet_dir,
    cdi_dir: Path = _paths.cdi_dir,
    run_dir: Path = _paths.run_dir,
    state_dir: Path = _paths.state_dir,
    containerd_config: Path = _defaults.containerd_config,
) -> int:
    """What is wrong with this cluster or node, and what to do.

    Looks at the cluster that kubectl would talk to, and changes nothing there; where there is
    none, at this machine. Exit code: 0 all is well, 1 something is wrong, 2 wrong usage,
    3 nothing is wrong, but something could not be looked at.

    Parameters
    ----------
    node:
        Without a name: look at this machine itself. With one: only at this node of the cluster,
        and at this machine if it is that node.
    preinstall:
        Only what a cluster must have before casaba is installed.
    preuninstall:
        Only whether pods hold cards, which keeps casaba from being removed.
    force:
        With --preuninstall: pods that hold cards are only told.
    json:
        One JSON object instead of a table.
    kubeconfig:
        How to reach the API server; as kubectl finds it if not given.
    namespace:
        Of the release; that of its pods if not given.
    node_label:
        Label and value of the nodes whose cards are served.
    resource_name:
        The classic resource that the webhook converts.
    trial_namespace:
        Where a classic pod is tried, without being stored.
    limit:
        Seconds for each observation.
    driver_root:
        Root of the driver's files; the first usual one that has them if not given.
    host_root:
        Where the host's own files are seen.
    kubelet_dir:
        The kubelet's --root-dir.
    cdi_dir:
        CDI specs.
    run_dir:
        The agent's run folder, with its socket.
    state_dir:
        The agent's state folder, with the guards.
    containerd_config:
        containerd's configuration.
    """
    if preinstall and preuninstall:
        raise InvalidInput("--preinstall and --preuninstall: give one of them")
    if force and not preuninstall:
        raise InvalidInput("--force: it belongs to --preuninstall")
    if (preinstall or preuninstall) and node is not None:
        raise InvalidInput("--node: an installation concerns the whole cluster; leave it out")
    if limit <= 0:
        raise InvalidInput(f"--limit {limit:g}: give more than 0 seconds")
    settings = DoctorSettings(
        kubeconfig=kubeconfig,
        names=Names(node_label=_label(node_label), namespace=namespace, resource=resource_name),
        node=None if node == _THIS else node,
        trial_namespace=trial_namespace,
        look_s=limit,
        paths=HostPaths(
            run_dir=run_dir, state_dir=state_dir, kubelet_dir=kubelet_dir, cdi_dir=cdi_dir
        ),
        driver_root=driver_root,
        host_root=host_root,
        containerd_config=containerd_config,
    )
    if preinstall:
        return _tell("preinstall", _before_install(settings), json)
    if preuninstall:
        return _tell("preuninstall", _before_uninstall(settings, force), json)
    scope, work = _scope(settings, is_this=node == _THIS)
    return _tell(scope, work, json)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInput(f"--node-label {text}: write it as KEY=VALUE, such as gpu=on")
    return key, value


Work = Coroutine[Any, Any, tuple[Finding, ...]]


def _scope(settings: DoctorSettings, *, is_this: bool) -> tuple[str, Work]:
    """What to look at, and the work."""
    if is_this:
        return "node", _host(settings)
    try:
        config = load_config(settings.kubeconfig)
    except KubeConfigError:
        if settings.kubeconfig or settings.node or os.environ.get("KUBECONFIG"):
            raise
        return "node", _host(settings)
    if settings.node and settings.node == (os.environ.get("NODE_NAME") or socket.gethostname()):
        return "cluster and node", _both(config, settings)
    return "cluster", _cluster(config, settings)


async def _both(config: KubeConfig, settings: DoctorSettings) -> tuple[Finding, ...]:
    return await _cluster(config, settings) + await _host(settings)


def _cluster(config: KubeConfig, settings: DoctorSettings) -> Work:
    with _libraries("a cluster", "kubectl -n hami-system exec deploy/hami-dra-monitor --"):
        from casaba.services.doctor.main import examine_cluster
    return examine_cluster(config, settings)


def _host(settings: DoctorSettings) -> Work:
    with _libraries("a node", "kubectl -n hami-system exec POD_OF_THE_AGENT --"):
        from casaba.services.doctor.host import examine_host
    return examine_host(settings)


def _before_install(settings: DoctorSettings) -> Work:
    from casaba.services.doctor.main import examine_before_install

    return examine_before_install(load_config(settings.kubeconfig), settings)


def _before_uninstall(settings: DoctorSettings, by_force: bool) -> Work:
    from casaba.services.doctor.main import examine_before_uninstall

    config = load_config(settings.kubeconfig)
    return examine_before_uninstall(config, settings, by_force=by_force)


@contextlib.contextmanager
def _libraries(what: str, where: str) -> Iterator[None]:
    """The images are small: each has only the libraries of its own part."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise HostError(
            f"{error.name} is not installed here, which examining {what} needs; run it where it "
            f"is, such as {where} casaba doctor"
        ) from error


def _tell(scope: str, work: Work, json: bool) -> int:
    found = asyncio.run(work)
    if json:
        print(msgspec.json.encode(report(scope, found)).decode(), flush=True)
    elif scope.startswith("pre"):
        print_lines(found)
    else:
        print_table(scope, found)
    return exit_code(found)


def _with_node_named(arguments: Sequence[str]) -> list[str]:
    """`--node` without a name gets the one that means this machine."""
    named: list[str] = []
    for position, argument in enumerate(arguments):
        following = arguments[position + 1 : position + 2]
        is_bare = argument == "--node" and (not following or following[0].startswith("-"))
        named.append(f"--node={_THIS}" if is_bare else argument)
    return named


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""
    codes: list[int] = []

    def parse_and_run() -> None:
        code = _parsed(_with_node_named(arguments))
        codes.append(code if isinstance(code, int) else 0)  # None: help was shown

    return exit_code_of("doctor", parse_and_run) or sum(codes)


def _parsed(arguments: list[str]) -> object:
    """What the command returns; wrong usage must not end with 1, which has a meaning."""
    try:
        return app(arguments, result_action="return_value", exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise InvalidInput(f"{str(error).rstrip('.')}; see casaba doctor --help") from error
