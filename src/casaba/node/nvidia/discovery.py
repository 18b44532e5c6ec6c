"""The cards of this node: what NVML and sysfs tell, as the model wants it."""

import logging
from pathlib import Path

from casaba.errors import CasabaError
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.model.version import cuda_version, semver
from casaba.node.nvidia.nvml import Nvml, NvmlDevice, find_library

log = logging.getLogger(__name__)


def discover_gpus(driver_root: Path, sysfs_root: Path) -> tuple[Gpu, ...]:
    """All cards that answer; one that does not is logged and left out.

    Raises HostError when there is no driver at all or NVML does not start.
    """
    with Nvml(find_library(driver_root)).session() as nvml:
        driver = semver(nvml.driver_version())
        cuda = cuda_version(nvml.cuda_driver_version())
        gpus = []
        for index in range(nvml.device_count()):
            try:
                gpus.append(_gpu(nvml.device(index), driver, cuda, sysfs_root))
            except CasabaError as error:
                log.error("gpu.unusable", extra={"nvml_index": index, "reason": str(error)})
        return tuple(gpus)


def _gpu(device: NvmlDevice, driver: str, cuda: str, sysfs_root: Path) -> Gpu:
    bus_id = f"{device.pci_domain:04x}:{device.pci_bus:02x}:{device.pci_device:02x}.0"
    major, minor = device.compute_capability
    return Gpu(
        uuid=GpuUuid(device.uuid),
        minor=device.minor,
        product_name=device.name,
        brand=device.brand,
        architecture=device.architecture,
        compute_capability=f"{major}.{minor}.0",
        driver_version=driver,
        cuda_driver_version=cuda,
        pci_bus_id=bus_id,
        pcie_root=pcie_root(sysfs_root, bus_id),
        memory_bytes=device.memory_bytes,
    )


def pcie_root(sysfs_root: Path, bus_id: str) -> str | None:
    """The root complex `pci<domain>:<bus>` above a function, from the link that sysfs keeps.

    None where the link is missing, as on some cloud machines (KEP-4381, standard attributes).
    """
    try:
        target = (sysfs_root / "bus" / "pci" / "devices" / bus_id).readlink()
    except OSError:
        return None
    parts = [part for part in target.parts if part.startswith("pci")]
    return parts[0] if parts else None
