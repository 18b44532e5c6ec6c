"""What an operator can set on `casaba node-agent`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.settings.budgets import BudgetSettings
from casaba.settings.host_paths import HostPaths

GPU_NODE_LABEL = ("gpu", "on")
"""Only nodes that carry this label offer their cards; kept from HAMi."""


@dataclass(frozen=True, kw_only=True)
class NodeAgentSettings:
    """Everything that the agent reads from flags and environment, in one value."""

    node_name: str
    """Name of this machine's Node object, and of its pool of devices."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: the service account of the pod."""

    paths: HostPaths = field(default_factory=HostPaths)
    """Where things are on the host."""

    driver_root: Path = Path("/")
    """Root of the NVIDIA driver's files; the GPU Operator's is /run/nvidia/driver."""

    dev_root: Path | None = None
    """Root of the device nodes; None: the driver root."""

    sysfs_root: Path = Path("/sys")
    """Where the PCI topology is read."""

    boot_id_path: Path = Path("/proc/sys/kernel/random/boot_id")
    """File with the kernel's boot id."""

    nvidia_ctk: Path | None = None
    """The toolkit's generator; None: from PATH."""

    nvidia_cdi_hook: Path | None = None
    """The toolkit's hook; None: from PATH."""

    card_spec: Path | None = None
    """A CDI spec of the cards to use as it is, where the toolkit can't run; None: the toolkit's."""

    pod_uid: str | None = None
    """UID of the agent's own pod, so that two of them can overlap; None on a host."""

    room_wait_s: float = 20.0
    """How long a prepare waits for another claim to give back a card, in seconds.

    A pod deleted by force frees its claim before the kubelet has ended its containers. Waiting
    costs seconds, a refusal the kubelet's back-off. Less than the kubelet's 45 s for a call.
    """

    schedule_check_s: float = 1.0
    """How often the cards' schedules are looked at and mended, in seconds."""

    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    """Numbers of every policy file."""
