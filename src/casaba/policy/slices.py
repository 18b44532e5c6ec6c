"""Which devices the node offers, in the form of the ResourceSlice's spec (resource.k8s.io/v1)."""

from collections.abc import Iterable
from typing import Any

from casaba.errors import HostError
from casaba.model.gpu import Gpu
from casaba.model.ids import NodeName
from casaba.model.quantity import MIB, format_binary
from casaba.settings.host_paths import DRIVER_NAME

Spec = dict[str, Any]
"""The spec of a ResourceSlice as JSON knows it."""

MAX_DEVICES = 128
"""The API server's limit of devices in one slice."""

DEVICE_TYPE = "hami-gpu"

CORES = "cores"
MEMORY = "memory"
"""Keys of a device's capacity, and of what a claim consumes."""


def slice_spec(node: NodeName, gpus: Iterable[Gpu], generation: int) -> Spec:
    """The one slice of this node's pool, devices by minor number; empty when there is no card.

    Raises HostError for more cards than one slice takes.
    """
    devices = [_device(gpu) for gpu in sorted(gpus, key=lambda gpu: gpu.minor)]
    if len(devices) > MAX_DEVICES:
        raise HostError(f"{len(devices)} cards, but one slice takes {MAX_DEVICES}")
    spec: Spec = {
        "driver": DRIVER_NAME,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
    }
    # The API server leaves out an empty list, and what it has is compared with this.
    return {**spec, "devices": devices} if devices else spec


def _device(gpu: Gpu) -> Spec:
    return {
        "name": gpu.device_name,
        "allowMultipleAllocations": True,
        "attributes": _attributes(gpu),
        "capacity": {CORES: _cores(), MEMORY: _memory(gpu.memory_bytes)},
    }


def _attributes(gpu: Gpu) -> Spec:
    attributes: Spec = {
        "architecture": {"string": gpu.architecture},
        "brand": {"string": gpu.brand},
        "cudaComputeCapability": {"version": gpu.compute_capability},
        "cudaDriverVersion": {"version": gpu.cuda_driver_version},
        "driverVersion": {"version": gpu.driver_version},
        "minor": {"int": gpu.minor},
        "pcieBusID": {"string": gpu.pci_bus_id},
        "productName": {"string": gpu.product_name},
        "type": {"string": DEVICE_TYPE},
        "uuid": {"string": gpu.uuid},
    }
    if gpu.pcie_root is not None:
        attributes["resource.kubernetes.io/pcieRoot"] = {"string": gpu.pcie_root}
    return attributes


def _cores() -> Spec:
    valid = {"min": "0", "max": "100", "step": "1"}
    return {"value": "100", "requestPolicy": {"default": "100", "validRange": valid}}


def _memory(memory_bytes: int) -> Spec:
    """Whole MiB: the API server refuses a maximum that is not min + n·step (KEP-5075)."""
    total = format_binary(memory_bytes // MIB * MIB)
    valid = {"min": "1Mi", "max": total, "step": "1Mi"}
    return {"value": total, "requestPolicy": {"default": total, "validRange": valid}}
