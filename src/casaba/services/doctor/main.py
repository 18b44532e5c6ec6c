"""Examines a cluster; `host` examines this machine."""

from contextlib import AbstractAsyncContextManager

from casaba.kube import KubeClient, KubeConfig, KubeError, Unreachable
from casaba.policy.diagnosis import Finding, Unseen
from casaba.policy.diagnosis.cluster.observations import ClusterObservations
from casaba.policy.diagnosis.cluster.tables import (
    diagnose_cluster,
    diagnose_preinstall,
    diagnose_uninstall,
    diagnose_version,
)
from casaba.services.doctor.cluster import (
    Object,
    observe_cluster,
    observe_holders,
    observe_prerequisites,
    read_version,
)
from casaba.settings.doctor import DoctorSettings

_PATIENCE_S = 5.0


async def examine_cluster(config: KubeConfig, settings: DoctorSettings) -> tuple[Finding, ...]:
    """A cluster in which casaba is, or should be; never raises KubeError."""
    async with _client(config, settings) as client:
        version = await _version(client)
        if isinstance(version, _Nobody):
            return diagnose_version(version.observations)
        return diagnose_cluster(await observe_cluster(client, settings, version))


async def examine_before_install(
    config: KubeConfig, settings: DoctorSettings
) -> tuple[Finding, ...]:
    """A cluster in which casaba is to be installed; never raises KubeError."""
    async with _client(config, settings) as client:
        version = await _version(client)
        if isinstance(version, _Nobody):
            return diagnose_version(version.observations)
        return diagnose_preinstall(await observe_prerequisites(client, settings, version))


async def examine_before_uninstall(
    config: KubeConfig, settings: DoctorSettings, *, by_force: bool
) -> tuple[Finding, ...]:
    """A cluster from which casaba is to be removed; never raises KubeError."""
    async with _client(config, settings) as client:
        seen = await observe_holders(client, settings)
        return diagnose_uninstall(seen, settings.release, by_force=by_force)


def _client(
    config: KubeConfig, settings: DoctorSettings
) -> AbstractAsyncContextManager[KubeClient]:
    return KubeClient(
        config,
        field_manager="casaba-doctor",
        request_timeout_s=settings.look_s,
        patience_s=_PATIENCE_S,
    )


class _Nobody(Unseen):
    """Nobody answers: what else is asked would only fail as well."""

    @property
    def observations(self) -> ClusterObservations:
        return ClusterObservations(now_s=0.0, version=Unseen(self.reason))


async def _version(client: KubeClient) -> Object | Unseen:
    try:
        return await read_version(client)
    except Unreachable as error:
        return _Nobody(str(error))
    except KubeError as error:
        return Unseen(str(error))
