"""What all pods of a node share."""

from dataclasses import dataclass

from casaba.kube import KubeClient
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.kubelet.claims import PodClaims
from casaba.simulation.kubelet.events import EventRecorder
from casaba.simulation.kubelet.health import DeviceHealths


@dataclass(frozen=True, kw_only=True)
class NodeServices:
    """What all pods of a node share."""

    client: KubeClient
    settings: SimulatedKubeletSettings
    claims: PodClaims
    healths: DeviceHealths
    events: EventRecorder
    isolated: bool
    """Whether containers get mount namespaces."""
