"""Leases (k8s.io/api, coordination/v1)."""

from casaba.wire.kubernetes.meta import ObjectMeta, Wire


class LeaseSpec(Wire, frozen=True):
    """Who holds a lease, since when and for how many seconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """A lease, as used for heartbeats and elections."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()
