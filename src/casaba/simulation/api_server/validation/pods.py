"""Rules for pods, as far as a pod of this system can break them (core/v1 in 1.36)."""

from collections.abc import Iterable, Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.containers import containers_errors
from casaba.simulation.api_server.validation.fields import (
    Errors,
    chosen,
    duplicate,
    each,
    invalid,
    required,
)
from casaba.simulation.api_server.validation.metadata import label_errors
from casaba.simulation.api_server.validation.pod_changes import changed_pod_errors
from casaba.simulation.api_server.validation.selectors import (
    node_selector_errors,
    node_selector_term_errors,
)
from casaba.simulation.api_server.validation.tolerations import tolerations_errors

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LARGEST_INT32 = 2**31 - 1


def pod_errors(pod: Object, old: Object | None) -> Errors:
    """The spec, and that it hardly changes."""
    spec = pod["spec"]
    yield from _spec_errors(spec, "spec")
    if old is not None:
        yield from changed_pod_errors(spec, old["spec"])


def _spec_errors(spec: Object, path: str) -> Errors:
    volumes = [volume.get("name", "") for volume in spec.get("volumes", ())]
    yield from _volume_errors(volumes, f"{path}.volumes")
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims", ())]
    yield from _claims_errors(spec.get("resourceClaims", ()), f"{path}.resourceClaims")
    containers = spec.get("containers", ())
    if not containers:
        yield required(f"{path}.containers")
    yield from containers_errors(containers, f"{path}.containers", claims, volumes, [])
    taken = [container.get("name", "") for container in containers]
    initial = spec.get("initContainers", ())
    yield from containers_errors(initial, f"{path}.initContainers", claims, volumes, taken)
    yield from chosen(f"{path}.restartPolicy", spec.get("restartPolicy", ""), _RESTART_POLICIES)
    yield from chosen(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS_POLICIES)
    yield from label_errors(f"{path}.nodeSelector", spec.get("nodeSelector", {}))
    yield from _affinity_errors(spec.get("affinity", {}), f"{path}.affinity")
    yield from _name_errors(spec, path)
    deadline_s = spec.get("activeDeadlineSeconds", 1)
    if not 1 <= deadline_s <= _LARGEST_INT32:
        detail = f"must be between 1 and {_LARGEST_INT32}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline_s, detail)
    yield from tolerations_errors(spec.get("tolerations", ()), f"{path}.tolerations")


def _name_errors(spec: Object, path: str) -> Errors:
    for field, form in (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.label),
        ("subdomain", names.label),
        ("priorityClassName", names.subdomain),
        ("runtimeClassName", names.subdomain),
    ):
        if value := spec.get(field):
            yield from each(f"{path}.{field}", form(value), value)


def _volume_errors(volumes: Sequence[str], path: str) -> Errors:
    for index, name in enumerate(volumes):
        place = f"{path}[{index}].name"
        if not name:
            yield required(place)
        else:
            yield from each(place, names.label(name), name)
        if name in volumes[:index]:
            yield duplicate(place, name)


def _claims_errors(claims: Iterable[Object], path: str) -> Errors:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield required(f"{place}.name")
        elif name in seen:
            yield duplicate(f"{place}.name", name)
        else:
            yield from each(f"{place}.name", names.label(name), name)
        seen.add(name)
        yield from _claim_source_errors(claim, place)


def _claim_source_errors(claim: Object, path: str) -> Errors:
    sources = [
        field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim
    ]
    if len(sources) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        yield invalid(path, claim, detail)
    if not sources:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid(path, claim, detail)
    for field in sources:
        yield from each(f"{path}.{field}", names.subdomain(claim[field]), claim[field])


def _affinity_errors(affinity: Object, path: str) -> Errors:
    node = affinity.get("nodeAffinity", {})
    place = f"{path}.nodeAffinity"
    if selector := node.get("requiredDuringSchedulingIgnoredDuringExecution"):
        wanted = f"{place}.requiredDuringSchedulingIgnoredDuringExecution"
        yield from node_selector_errors(wanted, selector)
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(node.get(preferred, ())):
        at = f"{place}.{preferred}[{index}]"
        if not 1 <= term.get("weight", 0) <= 100:
            yield invalid(f"{at}.weight", term.get("weight", 0), "must be in the range 1-100")
        yield from node_selector_term_errors(f"{at}.preference", term.get("preference", {}))
