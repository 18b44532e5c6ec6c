"""What stands between a pod and its claims, and what a driver's answer must be. Pure.

Sources: KEP-4381, KEP-3063; the refusals are the kubelet's own words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.errors import CasabaError
from casaba.net.dra_client import AnsweredDevice
from casaba.net.dra_sockets import ClaimReference
from casaba.simulation.kubelet.claim_states import ClaimState

Object = Mapping[str, Any]


class ClaimsNotReady(CasabaError):
    """A pod's claims can't be prepared, or unprepared, now; the pod is tried again later."""


@dataclass(frozen=True, kw_only=True)
class PodClaim:
    """One entry of a pod's resourceClaims with the claim that it stands for."""

    entry: str
    claim: str
    from_template: bool


def pod_claims(pod: Object) -> Iterator[PodClaim]:
    """The claims of a pod; entries for which no claim is needed are left out.

    Raises ClaimsNotReady while a claim from a template has not been made.
    """
    made = _made_claims(pod)
    for entry in pod["spec"].get("resourceClaims") or ():
        if named := entry.get("resourceClaimName"):
            yield PodClaim(entry=entry["name"], claim=named, from_template=False)
        elif entry["name"] not in made:
            raise ClaimsNotReady(
                f"prepare resource claim: pod {_quoted(pod)}: ResourceClaim not created yet"
            )
        elif claim := made[entry["name"]]:
            yield PodClaim(entry=entry["name"], claim=claim, from_template=True)


def claim_names(pod: Object) -> dict[str, str]:
    """The claim of each entry of a pod's resourceClaims, as far as there is one."""
    entries = pod["spec"].get("resourceClaims") or ()
    named = {entry["name"]: entry.get("resourceClaimName") for entry in entries}
    return {entry: claim for entry, claim in (named | _made_claims(pod)).items() if claim}


def _made_claims(pod: Object) -> dict[str, str | None]:
    """The claims that were made from templates; None where none was needed."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {status["name"]: status.get("resourceClaimName") for status in statuses}


def check_claim(pod: Object, used: PodClaim, claim: Object) -> None:
    """Raises ClaimsNotReady when the claim is not this pod's to use."""
    pod_uid = pod["metadata"]["uid"]
    metadata = claim["metadata"]
    owners = [owner["uid"] for owner in metadata.get("ownerReferences") or () if _controls(owner)]
    if used.from_template and pod_uid not in owners:
        raise ClaimsNotReady(
            f"ResourceClaim {metadata['namespace']}/{metadata['name']} was not created for Pod "
            f"{_named(pod)} (Pod is not owner)"
        )
    status = claim.get("status") or {}
    if pod_uid not in [user.get("uid") for user in status.get("reservedFor") or ()]:
        raise ClaimsNotReady(
            f"pod {pod['metadata']['name']} ({pod_uid}) is not allowed to use ResourceClaim "
            f"{metadata['name']} ({metadata['uid']})"
        )
    if not status.get("allocation"):
        raise ClaimsNotReady(f"ResourceClaim {metadata['name']}: not allocated")


def drivers_of(claim: Object) -> tuple[str, ...]:
    """The drivers of an allocation, in its order."""
    results = claim["status"]["allocation"].get("devices", {}).get("results") or ()
    return tuple(dict.fromkeys(result["driver"] for result in results))


def check_same_claim(known: ClaimState, claim: Object) -> None:
    """Raises ClaimsNotReady while an older claim of that name has not been unprepared."""
    if known.uid != claim["metadata"]["uid"]:
        raise ClaimsNotReady(
            f"old ResourceClaim with same name {known.name} and different UID {known.uid} "
            "still exists (previous pod force-deleted?!)"
        )


def check_answer(call: str, asked: Sequence[ClaimReference], errors: Mapping[str, str]) -> None:
    """An answer has one entry for each claim and no other, without errors; else ClaimsNotReady.

    `call` is the method's name; `errors` has the error of each entry by claim UID.
    """
    names = {reference.uid: reference.name for reference in asked}
    for uid, error in errors.items():
        if uid not in names:
            raise ClaimsNotReady(f"{call} returned result for unknown claim UID {uid}")
        if error:
            raise ClaimsNotReady(f"{call} failed for ResourceClaim {names[uid]}: {error}")
    if missing := len(names) - len(errors):
        raise ClaimsNotReady(f"{call} skipped {missing} ResourceClaims")


def devices_for(state: ClaimState, request: str) -> Iterator[tuple[str, AnsweredDevice]]:
    """(driver, device) of a claim, for one request or, if it is empty, for all.

    A container can't name `main/sub` of a firstAvailable request, and an answer's names are taken
    as they are: a driver must answer `main`.
    """
    for driver, devices in state.drivers.items():
        for device in devices:
            if not request or not device.requests or request in device.requests:
                yield driver, device


def _controls(owner: Object) -> bool:
    return bool(owner.get("controller"))


def _named(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _quoted(pod: Object) -> str:
    return f'"{_named(pod)}"'
