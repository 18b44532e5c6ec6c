"""What an operator can set on the conversion of classic pods; the classic chart's names beside."""

from dataclasses import dataclass

from casaba.errors import InvalidInput

CORE_POLICIES = ("default", "force", "disable")


@dataclass(frozen=True, kw_only=True)
class ConversionSettings:
    """Resource names and defaults. Raises InvalidInput for values that make no sense."""

    count_resource: str = "nvidia.com/gpu"
    """Number of different cards (`resourceName`)."""

    memory_resource: str = "nvidia.com/gpumem"
    """Memory of each card, in MiB times the factor (`resourceMem`)."""

    percentage_resource: str = "nvidia.com/gpumem-percentage"
    """Memory of each card, in percent of it (`resourceMemPercentage`)."""

    cores_resource: str = "nvidia.com/gpucores"
    """Compute time of each card, in percent of it (`resourceCores`)."""

    priority_resource: str = "nvidia.com/priority"
    """0: high, 1: low (`resourcePriority`)."""

    default_count: int = 1
    """Cards for a container that asks for memory or cores only (`defaultGPUNum`)."""

    default_memory_mib: int = 0
    """Memory of each card where none is asked for, in MiB; 0: all of it (`defaultMemory`)."""

    default_cores_percent: int = 0
    """Compute time where a part of the memory is asked for, in percent; 0: no cap, no guarantee
    (`defaultCores`)."""

    memory_factor: int = 1
    """MiB in one unit of the memory resource (`memoryFactor`)."""

    core_policy: str = "default"
    """default, force or disable, where a container does not say it (`gpuCorePolicy`)."""

    refuse_oversized: bool = False
    """Whether memory that no visible card has is refused; else it is admitted with a warning."""

    policies_as_constraints: bool = False
    """Whether `spread` and `numa`, preferences in HAMi, and `topology-aware` and numa-bind, which
    keep a pod Pending there too, become constraints: a pod stays Pending while they can't hold;
    else a warning tells that they have no effect."""

    def __post_init__(self) -> None:
        if len(set(self.resources)) != len(self.resources) or not all(self.resources):
            raise InvalidInput(f"resource names must differ: {', '.join(self.resources)}")
        for name, lowest in (("default_count", 0), ("default_memory_mib", 0), ("memory_factor", 1)):
            if getattr(self, name) < lowest:
                raise InvalidInput(f"{name}: {getattr(self, name)} is less than {lowest}")
        if not 0 <= self.default_cores_percent <= 100:
            raise InvalidInput(f"default_cores_percent: {self.default_cores_percent}: use 0 to 100")
        if self.core_policy not in CORE_POLICIES:
            known = ", ".join(CORE_POLICIES)
            raise InvalidInput(f"core_policy: {self.core_policy!r} is none of {known}")

    @property
    def resources(self) -> tuple[str, ...]:
        """All names that conversion takes away from a pod."""
        return (
            self.count_resource,
            self.memory_resource,
            self.percentage_resource,
            self.cores_resource,
            self.priority_resource,
        )

    @property
    def triggers(self) -> tuple[str, ...]:
        """Those of which each alone asks for a card."""
        return self.resources[:-1]
