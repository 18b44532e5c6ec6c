"""Objects that are only ever created by a dry run, to see what becomes of them."""

from typing import Any

from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid, NodeName
from casaba.policy.slices import slice_spec

CANARY_DRIVER = "doctor.casaba.dev"
"""A driver of its own: no admission policy keeps it for node agents."""

_NODE = NodeName("casaba-doctor")
_GIB = 1 << 30
_CARD = Gpu(
    uuid=GpuUuid("GPU-00000000-0000-0000-0000-000000000000"),
    minor=0,
    product_name="canary",
    brand="Nvidia",
    architecture="Ampere",
    compute_capability="8.6.0",
    driver_version="580.0.0",
    cuda_driver_version="13.0.0",
    pci_bus_id="0000:00:00.0",
    pcie_root=None,
    memory_bytes=24 * _GIB,
)


def canary_slice() -> dict[str, Any]:
    """A slice in the form in which agents publish cards."""
    spec = slice_spec(_NODE, (_CARD,), 1)
    return {"metadata": {"generateName": f"{_NODE}-"}, "spec": {**spec, "driver": CANARY_DRIVER}}


def classic_pod(resource: str) -> dict[str, Any]:
    """A pod that asks for a card as with HAMi, allowed under the restricted policy.

    It names no amount: what the webhook's defaults give needs no card to be there.
    """
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"limits": {resource: "1"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {
        "metadata": {"generateName": "casaba-doctor-"},
        "spec": {
            "containers": [container],
            "securityContext": security,
            "automountServiceAccountToken": False,
        },
    }
