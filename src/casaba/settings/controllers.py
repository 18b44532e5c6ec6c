"""What an operator can set on `casaba controller`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.errors import InvalidInput

DAY_S = 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class CollectionSettings:
    """When ResourceClaimTemplates that the webhook made are deleted."""

    period_s: float = 600.0
    """So long after its last use a template stays that no pod names, in seconds."""

    settle_s: float = 120.0
    """So long, in seconds, a version of a template has to be known before it may be deleted.

    Longer than the webhook's minute between two renewals and the time of an admission together:
    then no clock that is set wrong can cost a pod its template.
    """

    check_s: float = 30.0
    """How often it is looked whether pods have ended, in seconds."""


@dataclass(frozen=True, kw_only=True)
class CertificateSettings:
    """The webhook's certificates, where cert-manager does not make them."""

    service: str = "hami-dra-webhook"
    """Name of the webhook's Service in the controller's namespace; the certificate is for it."""

    cluster_domain: str = "cluster.local"
    """DNS domain of the cluster."""

    serving_secret: str = "hami-dra-webhook-tls"
    """Secret with tls.crt, tls.key and ca.crt, which the webhook's pods mount."""

    authority_secret: str = "hami-dra-webhook-ca"
    """Secret with the authority's ca.crt and ca.key, which only the controller reads."""

    mutating: tuple[str, ...] = ("hami-dra-webhook",)
    """Names of the MutatingWebhookConfigurations that get the CA bundle."""

    validating: tuple[str, ...] = ("hami-dra-webhook",)
    """Names of the ValidatingWebhookConfigurations that get the CA bundle."""

    authority_lifetime_s: float = 730 * DAY_S
    """How long a new authority is valid, in seconds."""

    serving_lifetime_s: float = 90 * DAY_S
    """How long a new serving certificate is valid, in seconds."""

    renew_at: float = 2 / 3
    """The part of a lifetime after which a successor is made, 0 to 1."""

    bundle_settle_s: float = 15.0
    """So long, in seconds, every API server may need to use a CA bundle that was patched."""

    propagation_s: float = 600.0
    """So long, in seconds, every webhook replica may need to serve what its Secret holds.

    The kubelet looks at Secrets about each minute, the webhook at its files each few seconds.
    """

    check_s: float = 10.0
    """How often Secrets and webhook configurations are looked at, in seconds."""

    def __post_init__(self) -> None:
        """Raises InvalidInput for times that could not be kept."""
        if not 0 < self.renew_at < 1:
            raise InvalidInput(
                f"certificates are renewed at {self.renew_at} of their lifetime; "
                "give a part between 0 and 1, such as 0.66"
            )
        longest_s = self.authority_lifetime_s * (1 - self.renew_at)
        if not 0 < self.serving_lifetime_s <= longest_s:
            raise InvalidInput(
                f"a serving certificate can't live {self.serving_lifetime_s / DAY_S:g} days: its "
                f"authority may have only {longest_s / DAY_S:g} left; shorten it, or lengthen the "
                "authority's lifetime"
            )


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Whom webhooks trust whose certificate is made by somebody else, and given in a Secret."""

    secret: str
    """Secret whose ca.crt they are to trust."""

    mutating: tuple[str, ...] = ("hami-dra-webhook",)
    """Names of the MutatingWebhookConfigurations that get the CA bundle."""

    validating: tuple[str, ...] = ("hami-dra-webhook",)
    """Names of the ValidatingWebhookConfigurations that get the CA bundle."""

    propagation_s: float = 600.0
    """So long, in seconds, every webhook replica may need to serve what its Secret holds."""

    check_s: float = 10.0
    """How often Secret and webhook configurations are looked at, in seconds."""


@dataclass(frozen=True, kw_only=True)
class AllocationMetricsSettings:
    """Which names allocation is told under."""

    legacy_dra_names: bool = True
    """Also the old names of hami-dra-monitor (GPUDeviceMemoryLimit… in MiB); on, as there."""

    legacy_scheduler_names: bool = False
    """Also the old names of HAMi's scheduler (vGPUMemoryAllocated… in bytes); off, as there.

    Four names are in both sets; with both on they mean what hami-dra-monitor means by them.
    """

    resource_name: str = "nvidia.com/gpu"
    """Classic resource: cards."""

    memory_resource_name: str = "nvidia.com/gpumem"
    """Classic resource: MiB of card memory."""

    cores_resource_name: str = "nvidia.com/gpucores"
    """Classic resource: percent of a card's compute."""


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Everything that the controller reads from flags and environment, in one value."""

    namespace: str
    """Where the Lease, the Secrets and the controller's own pods are."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: the service account of the pod."""

    pod_name: str | None = None
    """Our own pod, which is labelled while it leads; None: no pod is labelled."""

    metrics_address: str = ":8080"
    """Where /metrics, /healthz and /readyz are served."""

    lease_name: str = "casaba-controller"
    """Name of the Lease that the replicas stand for."""

    lease_duration_s: float = 15.0
    """How long the others wait after the leader's last renewal, in seconds."""

    renew_deadline_s: float = 10.0
    """How long the leader goes on without a renewal, in seconds."""

    retry_period_s: float = 2.0
    """How often the Lease is tried, in seconds."""

    label_check_s: float = 5.0
    """How often it is looked whether only the leader's pod has the leader's label, in seconds."""

    collection: CollectionSettings = field(default_factory=CollectionSettings)
    """Unused templates."""

    certificates: CertificateSettings | None = field(default_factory=CertificateSettings)
    """The webhook's certificates; None: somebody else makes them."""

    trust: TrustSettings | None = None
    """Whom the webhooks trust for a certificate that somebody gives; None: not our part."""

    allocation_metrics: AllocationMetricsSettings = field(default_factory=AllocationMetricsSettings)
    """Metric names."""
