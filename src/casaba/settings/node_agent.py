"""What an operator can set on `casaba node-agent`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.settings.budgets import BudgetSettings
from casaba.settings.host_paths import HostPaths

OPERATOR_SOCKET = "agent.sock"
"""File name of the operator's socket in the run folder."""

GPU_NODE_LABEL = ("gpu", "on")
"""By default only nodes that carry this label offer their cards; kept from HAMi."""


@dataclass(frozen=True, kw_only=True)
class NodeAgentSettings:
    """Everything that the agent reads from flags and environment, in one value."""

    node_name: str
    """Name of this machine's Node object, and of its pool of devices."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: the service account of the pod."""

    node_labels: tuple[tuple[str, str], ...] = (GPU_NODE_LABEL,)
    """Keys and values of the labels that the node must carry, all of them, to offer its cards."""

    paths: HostPaths = field(default_factory=HostPaths)
    """Where things are on the host."""

    driver_root: Path = Path("/")
    """Root of the NVIDIA driver's files; the GPU Operator's is /run/nvidia/driver."""

    host_driver_root: Path | None = None
    """The driver root as the host's container runtime sees it; None: as the agent does."""

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

    driver_answer_s: float = 30.0
    """How long the driver and the toolkit may take to tell the cards, in seconds."""

    driver_check_s: float = 5.0
    """How often it is looked whether there is a driver, and still the same, in seconds."""

    crippled_retry_s: float = 60.0
    """When to try again after the API server dropped fields of the slice, in seconds.

    A try is one dry run: a thousand nodes make 17 of them a second.
    """

    hami_silence_s: float = 300.0
    """An old HAMi that writes nothing on the Node for so long is gone, in seconds; HAMi's own."""

    card_resources: tuple[str, ...] = (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
    )
    """Resources with which a device plugin offers the same cards; `*` for any characters."""

    metrics_address: str = ":9394"
    """Where /metrics, /healthz and /readyz are served: host:port; the port is HAMi's."""

    legacy_metrics: bool = False
    """Whether HAMi's metric names of before 2.9 are served too."""

    proc_root: Path = Path("/proc")
    """Where the processes behind NVML's PIDs are looked at; the host's."""

    pod_resources_timeout_s: float = 2.0
    """How long a scrape waits for the kubelet to tell its pods, in seconds."""

    host_answer_s: float = 5.0
    """How long a scrape waits for NVML, and for the host's files, in seconds.

    Cards that hang cost one scrape so much, and later ones nothing; Prometheus waits 10 s.
    """

    claim_answer_s: float = 2.0
    """How long a scrape waits for the API server to tell the pods of a shared claim, in seconds."""

    usage_follow_s: float = 2.0
    """How often use without a cap is looked at between scrapes, in seconds.

    No guard measures it where nobody shares the card, and NVML only tells of the last second.
    """

    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    """Numbers of every policy file."""

    @property
    def operator_socket(self) -> Path:
        """Where `casaba smi` asks; for root alone, never mounted into a tenant."""
        return self.paths.run_dir / OPERATOR_SOCKET

    @property
    def pod_resources_socket(self) -> Path:
        """Where the kubelet tells which pod has which devices."""
        return self.paths.kubelet_dir / "pod-resources" / "kubelet.sock"
