"""What to do next for the webhook's certificates; pure.

Facts, in the order in which they are looked at            next step
─────────────────────────────────────────────────────────  ─────────────────────────────────────
no authority that signs, or it is due                      MakeAuthority
a bundle lacks the authority, or that of the certificate   ExtendBundle  (only adds)
the certificate is missing, not ours or due
    … and every bundle has had the authority long enough   IssueServing
    … else                                                 wait
a bundle holds more than the authority
    … and the certificate has been out long enough         TrimBundle
    … else                                                 wait
otherwise                                                  wait until one is due

Each step is one write, guarded by the version that was read, and leaves a state from which
whoever comes next goes on: there is nothing to remember. A client that trusts the bundle can
verify what is served at every moment: an authority is in every bundle before anything that it
signed is served, and leaves after everything that another one signed has been replaced. What has
to be long enough is counted from when we first saw it, by a clock that nobody sets, so a set clock
makes at most a successor too early.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

Fingerprint = str
"""Names a certificate: SHA-256 of its DER."""


class Fault(Enum):
    """Why what a Secret holds can't be used; the value is said to people."""

    MISSING = "there is none"
    UNREADABLE = "it holds no PEM certificate with its key"
    KEY_MISMATCH = "certificate and key do not belong together"
    NOT_AN_AUTHORITY = "its certificate may not sign others"
    OTHER_SIGNER = "another authority signed it"
    OTHER_NAMES = "it is not for the webhook's Service"


@dataclass(frozen=True, kw_only=True)
class Held:
    """A certificate with its key, as a Secret holds it."""

    fingerprint: Fingerprint
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class CertificateState:
    """What the cluster holds, and how long we have seen it so."""

    authority: Held | Fault
    serving: Held | Fault
    """A fault here may also be that it does not belong to the authority."""
    serving_signer: Fingerprint | None
    """The authority that signed what is served, as far as its Secret tells."""
    bundles: Mapping[str, frozenset[Fingerprint]] = field(default_factory=dict)
    """What each webhook trusts, by a name of it; none where none is configured yet."""
    bundled_for_s: float = 0.0
    """How long every bundle has been seen with the authority in it."""
    serving_for_s: float = 0.0
    """How long the serving certificate has been seen unchanged."""


@dataclass(frozen=True, kw_only=True)
class CertificateTimes:
    """Lifetimes and patience, see settings.controllers.CertificateSettings."""

    authority_lifetime_s: float
    serving_lifetime_s: float
    renew_at: float
    bundle_settle_s: float
    propagation_s: float


@dataclass(frozen=True, kw_only=True)
class MakeAuthority:
    """Put a new authority into its Secret."""

    why: str


@dataclass(frozen=True, kw_only=True)
class ExtendBundle:
    """Let these webhooks trust the authority, and still all that they trust."""

    webhooks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class IssueServing:
    """Put a new certificate, signed by the authority, into the serving Secret."""

    why: str


@dataclass(frozen=True, kw_only=True)
class TrimBundle:
    """Let these webhooks trust the authority only."""

    webhooks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing to do now; look again in so many seconds at the latest."""

    seconds: float
    is_done: bool
    """Whether all is as it should be; not while something has to settle."""


Step = MakeAuthority | ExtendBundle | IssueServing | TrimBundle | Wait

DUE = "it is due for renewal"


def next_step(state: CertificateState, now: datetime, times: CertificateTimes) -> Step:
    """The one thing to do next; `now` has a zone."""
    authority_left_s = _until_due_s(
        state.authority, now, times.authority_lifetime_s, times.renew_at
    )
    if isinstance(state.authority, Fault) or authority_left_s <= 0:
        return MakeAuthority(why=_why(state.authority))
    wanted = {state.authority.fingerprint} | ({state.serving_signer} - {None})
    if short := _names(state, lambda bundle: not wanted <= bundle):
        return ExtendBundle(webhooks=short)
    serving_left_s = _until_due_s(state.serving, now, times.serving_lifetime_s, times.renew_at)
    if isinstance(state.serving, Fault) or serving_left_s <= 0:
        settles_in_s = times.bundle_settle_s - state.bundled_for_s if state.bundles else 0.0
        if settles_in_s > 0:
            return Wait(seconds=settles_in_s, is_done=False)
        return IssueServing(why=_why(state.serving))
    left_s = min(authority_left_s, serving_left_s)
    return _trimming(state, state.authority.fingerprint, times) or Wait(
        seconds=left_s, is_done=True
    )


def next_trust(
    wanted: frozenset[Fingerprint],
    bundles: Mapping[str, frozenset[Fingerprint]],
    *,
    wanted_for_s: float,
    propagation_s: float,
) -> ExtendBundle | TrimBundle | Wait:
    """The next step towards bundles of these authorities alone, whose certificates others make.

    `wanted_for_s` is how long they have been seen to be these, in seconds: what an authority of
    before has signed may still be served.
    """
    if short := tuple(sorted(name for name, bundle in bundles.items() if not wanted <= bundle)):
        return ExtendBundle(webhooks=short)
    long = tuple(sorted(name for name, bundle in bundles.items() if bundle != wanted))
    if long and wanted_for_s >= propagation_s:
        return TrimBundle(webhooks=long)
    return Wait(seconds=propagation_s - wanted_for_s if long else propagation_s, is_done=True)


def _trimming(
    state: CertificateState, authority: Fingerprint, times: CertificateTimes
) -> Step | None:
    long = _names(state, lambda bundle: bundle != {authority})
    if not long:
        return None
    out_in_s = times.propagation_s - state.serving_for_s
    if out_in_s > 0:
        return Wait(seconds=out_in_s, is_done=True)
    return TrimBundle(webhooks=long)


def _names(
    state: CertificateState, chosen: Callable[[frozenset[Fingerprint]], bool]
) -> tuple[str, ...]:
    return tuple(sorted(name for name, bundle in state.bundles.items() if chosen(bundle)))


def _until_due_s(held: Held | Fault, now: datetime, lifetime_s: float, renew_at: float) -> float:
    """By what is left: a certificate does not say how long it was meant to live."""
    if isinstance(held, Fault):
        return 0.0
    return (held.expires_at - now).total_seconds() - lifetime_s * (1 - renew_at)


def _why(held: Held | Fault) -> str:
    return held.value if isinstance(held, Fault) else DUE
