"""Which examinations a question asks for. Each image has only the libraries of its own part."""

import contextlib
import os
import socket
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from casaba.cli.doctor_flags import THIS, Question
from casaba.errors import HostError
from casaba.kube import KubeConfig, KubeConfigError, load_config
from casaba.policy.diagnosis import Finding
from casaba.settings.doctor import DoctorSettings

Work = Coroutine[Any, Any, tuple[Finding, ...]]


@dataclass(frozen=True)
class Examination:
    """What is looked at, by the name that reports have for it, and the work."""

    scope: str
    work: Work


def examination(asked: Question, settings: DoctorSettings) -> Examination:
    """The examination that was asked for; raises KubeConfigError and HostError."""
    if asked.preinstall:
        return Examination("preinstall", _before_install(settings))
    if asked.preuninstall:
        return Examination("preuninstall", _before_uninstall(settings, asked.force))
    config = None if asked.node == THIS else _access(settings)
    if config is None:
        return Examination("node", _host(settings))
    if settings.node and settings.node == (os.environ.get("NODE_NAME") or socket.gethostname()):
        return Examination("cluster and node", _both(config, settings))
    return Examination("cluster", _cluster(config, settings))


def _access(settings: DoctorSettings) -> KubeConfig | None:
    """None where nobody has told of a cluster: then this machine is meant."""
    try:
        return load_config(settings.kubeconfig)
    except KubeConfigError:
        if settings.kubeconfig or settings.node or os.environ.get("KUBECONFIG"):
            raise
        return None


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
    try:
        yield
    except ModuleNotFoundError as error:
        raise HostError(
            f"{error.name} is not installed here, which examining {what} needs; run it where it "
            f"is, such as {where} casaba doctor"
        ) from error
