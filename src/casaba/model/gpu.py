"""A card of this node, as NVML describes it."""

from dataclasses import dataclass

from casaba.model.ids import DeviceName, GpuUuid


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One physical GPU; immutable facts only."""

    uuid: GpuUuid
    minor: int
    """Number N of /dev/nvidiaN."""
    product_name: str
    brand: str
    architecture: str
    compute_capability: str
    """Semver, such as 8.6.0."""
    driver_version: str
    """Semver, such as 580.126.9."""
    cuda_driver_version: str
    """Semver, such as 13.0.0."""
    pci_bus_id: str
    """domain:bus:device.function with a domain of four digits, lower case."""
    pcie_root: str | None
    """pci<domain>:<bus> of the root complex; None where sysfs does not tell."""
    memory_bytes: int

    @property
    def device_name(self) -> DeviceName:
        """Name in the pool, kept from HAMi."""
        return DeviceName(f"hami-gpu-{self.minor}")
