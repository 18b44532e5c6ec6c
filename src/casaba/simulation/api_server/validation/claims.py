"""Rules for ResourceClaim and ResourceClaimTemplate specs (resource.k8s.io/v1 in 1.36)."""

from collections.abc import Mapping

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import metadata
from casaba.simulation.api_server.validation.device_names import (
    CONFIGS,
    class_errors,
    fully_qualified_name_errors,
    label_errors,
    opaque_errors,
    selectors_errors,
    toleration_errors,
)
from casaba.simulation.api_server.validation.fields import (
    Errors,
    forbidden,
    immutable,
    invalid,
    listed,
    not_supported,
    required,
)

REQUESTS = 32
ALTERNATIVES = 8
CONSTRAINTS = 32
_MODES = ("All", "ExactCount")
_NO_SUCH_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_TEMPLATE_METADATA = frozenset({"labels", "annotations"})

RequestNames = Mapping[str, frozenset[str]]
"""Names of requests, with those of their alternatives."""


def claim_errors(claim: Object, old: Object | None) -> Errors:
    """The spec is checked once and then stays."""
    if old is None:
        yield from _devices_errors(claim["spec"].get("devices", {}), "spec.devices")
    else:
        yield from immutable("spec", claim["spec"], old["spec"])


def template_errors(template: Object, old: Object | None) -> Errors:
    """As a claim's, one level deeper; with labels and annotations for the claims."""
    if old is not None:
        yield from immutable("spec", template["spec"], old["spec"])
        return
    spec = template["spec"]
    yield from _template_metadata_errors(spec.get("metadata", {}))
    yield from _devices_errors(spec.get("spec", {}).get("devices", {}), "spec.spec.devices")


def _template_metadata_errors(given: Object) -> Errors:
    path = "spec.metadata"
    yield from metadata.annotation_errors(f"{path}.annotations", given.get("annotations", {}))
    yield from metadata.label_errors(f"{path}.labels", given.get("labels", {}))
    for field in given.keys() - _TEMPLATE_METADATA:
        yield forbidden(f"{path}.{field}", "cannot be set")


def request_names(devices: Object) -> RequestNames:
    """The names that constraints, configurations and results may use."""
    return {
        request.get("name", ""): frozenset(
            alternative.get("name", "") for alternative in request.get("firstAvailable", ())
        )
        for request in devices.get("requests", ())
    }


def request_reference_errors(name: str, path: str, known: RequestNames) -> Errors:
    """A request, or a request and one of its alternatives."""
    request, *alternatives = name.split("/")
    if len(alternatives) > 1:
        yield invalid(path, name, _NO_SUCH_REQUEST)
        return
    for part in (request, *alternatives):
        yield from label_errors(part, path)
    if request not in known or not set(alternatives) <= known[request]:
        yield invalid(path, name, _NO_SUCH_REQUEST)


def _devices_errors(devices: Object, path: str) -> Errors:
    known = request_names(devices)
    yield from listed(
        f"{path}.requests", devices.get("requests", ()), REQUESTS, _request_errors, _name
    )
    yield from listed(
        f"{path}.constraints",
        devices.get("constraints", ()),
        CONSTRAINTS,
        lambda constraint, place: _constraint_errors(constraint, place, known),
    )
    yield from listed(
        f"{path}.config",
        devices.get("config", ()),
        CONFIGS,
        lambda config, place: config_errors(config, place, known),
    )


def _name(named: Object) -> str:
    return str(named.get("name", ""))


def _request_errors(request: Object, path: str) -> Errors:
    yield from label_errors(request.get("name", ""), f"{path}.name")
    is_exact, alternatives = "exactly" in request, request.get("firstAvailable", ())
    told = "exactly one of `exactly` or `firstAvailable` is required"
    if is_exact and alternatives:
        yield invalid(path, None, f"{told}, but multiple fields are set")
    elif alternatives:
        yield from listed(
            f"{path}.firstAvailable", alternatives, ALTERNATIVES, _alternative_errors, _name
        )
    elif is_exact:
        yield from _exact_errors(request["exactly"], f"{path}.exactly")
    else:
        yield required(path, told)


def _alternative_errors(request: Object, path: str) -> Errors:
    yield from label_errors(request.get("name", ""), f"{path}.name")
    yield from _exact_errors(request, path)


def _exact_errors(request: Object, path: str) -> Errors:
    yield from class_errors(request.get("deviceClassName", ""), f"{path}.deviceClassName")
    yield from selectors_errors(request.get("selectors", []), f"{path}.selectors")
    yield from _count_errors(request.get("allocationMode", ""), request.get("count", 0), path)
    for index, toleration in enumerate(request.get("tolerations", ())):
        yield from toleration_errors(toleration, f"{path}.tolerations[{index}]")


def _count_errors(mode: str, count: int, path: str) -> Errors:
    if mode == "All":
        if count != 0:
            detail = "must not be specified when allocationMode is 'All'"
            yield invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)


def _constraint_errors(constraint: Object, path: str, known: RequestNames) -> Errors:
    yield from _references_errors(constraint, path, known)
    if "matchAttribute" in constraint:
        name, field = constraint["matchAttribute"], "matchAttribute"
    elif "distinctAttribute" in constraint:
        name, field = constraint["distinctAttribute"], "distinctAttribute"
    else:
        # The real server's words, which say the opposite of what is wrong.
        yield required(
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, '
            "but multiple fields are set",
        )
        return
    yield from fully_qualified_name_errors(name, f"{path}.{field}")


def _references_errors(owner: Object, path: str, known: RequestNames) -> Errors:
    yield from listed(
        f"{path}.requests",
        owner.get("requests", ()),
        REQUESTS,
        lambda name, place: request_reference_errors(name, place, known),
        str,
    )


def config_errors(config: Object, path: str, known: RequestNames) -> Errors:
    """A claim's configuration for some or all of its requests."""
    yield from _references_errors(config, path, known)
    yield from opaque_errors(config, path)
