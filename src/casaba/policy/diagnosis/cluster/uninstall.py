"""Whether casaba can be removed: not while pods hold its cards; pure.

Without an agent on the node they would stay in Terminating: nobody unprepares their claims.
"""

from functools import partial

from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Objects
from casaba.policy.diagnosis.finding import Check, Verdict, check, count, few, ok, warning, wrong
from casaba.policy.diagnosis.objects import Object, items, text
from casaba.policy.removal import kept, uninstalled_with
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.uninstall import HelmRelease


def holders(claims: Objects) -> tuple[str, ...]:
    """Who holds our devices, each once, as `namespace/pod`."""
    found = {
        f"{text(claim, 'metadata', 'namespace')}/{text(user, 'name')}"
        for claim in claims
        if is_ours(claim)
        for user in items(claim, "status", "reservedFor")
    }
    return tuple(sorted(found))


def is_ours(claim: Object) -> bool:
    """Whether a device of our driver is allocated to a claim."""
    results = items(claim, "status", "allocation", "devices", "results")
    return any(text(result, "driver") == DRIVER_NAME for result in results)


def _judge(claims: Objects, release: HelmRelease) -> Verdict:
    pods = holders(claims)
    if not pods:
        return ok("no pod holds a card")
    return wrong(
        f"{count(len(pods), 'pod')} hold{'s' * (len(pods) == 1)} cards: {few(pods)}",
        "delete these pods (kubectl get resourceclaims -A shows their claims) and uninstall again; "
        f"or keep casaba: {kept(release)}; or go on by force, and they will stay in Terminating: "
        f"{uninstalled_with(release, 'uninstall.force=true')}",
    )


def _judge_by_force(claims: Objects, release: HelmRelease) -> Verdict:
    verdict = _judge(claims, release)
    if verdict.state != "wrong":
        return verdict
    return warning(
        verdict.seen,
        "they will stay in Terminating until casaba is back on their nodes",
    )


def uninstall_checks(
    release: HelmRelease, *, by_force: bool
) -> tuple[Check[ClusterObservations], ...]:
    """The table for an uninstall of this release."""
    judge = partial(_judge_by_force if by_force else _judge, release=release)
    return (check("uninstall.holders", "pods with cards", lambda seen: seen.claims, judge),)
