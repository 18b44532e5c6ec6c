"""Objects as the controller reads them: no more of each than it needs."""

from msgspec import field

from casaba.wire.kubernetes import ObjectMeta, Wire


class ClaimTemplate(Wire, frozen=True):
    """A ResourceClaimTemplate, reduced to its metadata."""

    metadata: ObjectMeta


class QuotaSpec(Wire, frozen=True):
    """Limits of a namespace: quantities by resource."""

    hard: dict[str, str] = field(default_factory=dict)


class QuotaStatus(Wire, frozen=True):
    """What the API server counts."""

    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(Wire, frozen=True):
    """A quota of a namespace."""

    metadata: ObjectMeta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()
