"""Which plugins a kubelet takes: the rules of registration. Pure.

Sources: KEP-4381; the refusals are the kubelet's own words.
"""

import json
from collections.abc import Sequence

from casaba.errors import CasabaError
from casaba.net.dra_client import DRA_SERVICES, PluginInfo
from casaba.settings.simulation import KubeletVersion

PLUGIN_TYPE = "DRAPlugin"


class RegistrationRefused(CasabaError):
    """A plugin that this kubelet can't use; the plugin is told."""


def check_type(info: PluginInfo, socket: str) -> None:
    """Raises RegistrationRefused for what is no DRA plugin."""
    if info.type != PLUGIN_TYPE:
        raise RegistrationRefused(
            f"RegisterPlugin error -- no handler registered for plugin type: {info.type} "
            f"at socket {socket}"
        )


def chosen_service(info: PluginInfo) -> str:
    """The first service of the plugin's list that the kubelet knows; raises RegistrationRefused."""
    for service in info.supported_versions:
        if service in DRA_SERVICES:
            return service
    raise RegistrationRefused(
        "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC "
        f"versions of DRA driver plugin {info.name} at endpoint {info.endpoint}: "
        f"{_why_none(info.supported_versions)}"
    )


def _why_none(versions: Sequence[str]) -> str:
    if not versions:
        return "empty list of supported gRPC services (aka supported versions)"
    return (
        f"none of services supported by the plugin ({_listed(versions)}) are supported by the "
        f"kubelet ({_listed(tuple(DRA_SERVICES))})"
    )


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(json.dumps(name) for name in names)}]"


def endpoint_taken(driver: str, endpoint: str) -> RegistrationRefused:
    """Two plugins of a driver must have endpoints of their own."""
    return RegistrationRefused(
        "RegisterPlugin error -- plugin registration failed with err: endpoint "
        f"{endpoint} already registered for DRA driver plugin {driver}"
    )


def health_service(version: KubeletVersion, supported: Sequence[str]) -> str | None:
    """The service that is asked for device health; None before it was on by default.

    Kubelets of 1.36 ask every driver, whatever it lists (KEP-4680).
    """
    if version in ("1.34", "1.35"):
        return None
    if version != "1.36" and "v1.DRAResourceHealth" in supported:
        return "v1.DRAResourceHealth"
    return "v1alpha1.DRAResourceHealth"


def knows_share_ids(version: KubeletVersion) -> bool:
    """Whether share ids of a plugin's answer are kept (KEP-5075)."""
    return version != "1.34"
