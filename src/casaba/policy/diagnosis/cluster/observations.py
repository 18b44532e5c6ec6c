"""What is looked at in a cluster. Each observation is there, or says why it could not be made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from casaba.policy.diagnosis.finding import NOT_ASKED, Unseen
from casaba.policy.diagnosis.objects import Object
from casaba.settings.doctor import Names

Objects = tuple[Object, ...]


@dataclass(frozen=True, kw_only=True)
class Canary:
    """What became of a slice with consumable capacities that was created by a dry run."""

    dropped: tuple[str, ...] = ()
    """Paths of fields that the API server did not keep."""
    refusal: str | None = None
    """Its words, when it took no such slice at all."""
    local_before_s: float = 0.0
    local_after_s: float = 0.0
    """Our own clock before and after, in seconds since 1970."""
    server_s: float | None = None
    """The API server's in between, cut to whole seconds."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a classic pod that was created by a dry run."""

    pod: Object | None = None
    refusal: str | None = None
    namespace: str = ""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """Empty where the namespace could not be read."""


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """Configurations, ours and others'."""

    mutating: Objects
    validating: Objects


@dataclass(frozen=True, kw_only=True)
class AgentMetrics:
    """What an agent's own metrics tell."""

    registered: bool
    problems: tuple[str, ...]
    """Reasons."""
    unguarded: tuple[str, ...]
    """Containers as `namespace/pod container`."""


@dataclass(frozen=True, kw_only=True)
class ServedCertificate:
    """What a replica of the webhook tells of the certificate that it serves."""

    ends_s: float
    """In seconds since 1970; 0 where it has none to serve."""
    authority_ends_s: float | None
    """None where it was not given the authority's."""


@dataclass(frozen=True, kw_only=True)
class ClusterObservations:
    """A cluster at one moment."""

    names: Names = field(default_factory=Names)
    now_s: float
    """Our own clock, in seconds since 1970."""
    version: Object | Unseen = NOT_ASKED
    """The answer of /version."""
    resource_api: bool | Unseen = NOT_ASKED
    """Whether resource.k8s.io/v1 is served."""
    canary: Canary | Unseen = NOT_ASKED
    schedulers: Objects | Unseen = NOT_ASKED
    """Pods of the scheduler; none where the control plane is not shown."""
    nodes: Objects | Unseen = NOT_ASKED
    pods: Objects | Unseen = NOT_ASKED
    """Of casaba, in all namespaces."""
    slices: Objects | Unseen = NOT_ASKED
    """Of our driver."""
    claims: Objects | Unseen = NOT_ASKED
    classes: Objects | Unseen = NOT_ASKED
    webhooks: Webhooks | Unseen = NOT_ASKED
    trial: Trial | Unseen = NOT_ASKED
    lease: Object | Unseen | None = NOT_ASKED
    """The controller's; None when there is none."""
    node_leases: Objects | Unseen = NOT_ASKED
    metrics_restricted: bool = False
    """Whether a NetworkPolicy lets only some ask for metrics, maybe not the API server."""
    agents: Mapping[str, AgentMetrics | Unseen] | Unseen = NOT_ASKED
    """By node."""
    served: Mapping[str, ServedCertificate | Unseen] | Unseen = NOT_ASKED
    """By pod of the webhook."""
    events: Objects | Unseen = NOT_ASKED
    """Warnings about Nodes."""
    cert_manager: bool | Unseen = NOT_ASKED
    """Whether cert-manager.io/v1 is served."""
