"""Who may ask for admin access, and who may write which part of a claim's status.

Sources: KEP 5018 (adminAccess needs a labelled namespace), KEP 4817 and the feature
DRAResourceClaimGranularStatusAuthorization of Kubernetes 1.36. The real server asks for
`resourceclaims/binding` at the cluster scope and for `resourceclaims/driver` in the namespace.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from casaba.simulation.api_server.access import Access, Objects, access_of, named
from casaba.simulation.api_server.attributes import Attributes
from casaba.simulation.api_server.authorization import refusal
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import FieldError, invalid

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_GROUP = "resource.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_SERVICE_ACCOUNTS = "system:serviceaccounts"
_FORBIDDEN = "FieldValueForbidden"


def check_claim(attributes: Attributes, objects: Objects) -> None:
    """Raises ApiError 422."""
    if attributes.request.resource.group != _GROUP:
        return
    errors: Iterator[FieldError] = iter(())
    plural = attributes.request.resource.plural
    if attributes.operation == "CREATE" and plural.startswith("resourceclaim"):
        errors = _admin_errors(attributes, objects)
    elif plural == "resourceclaims" and attributes.request.subresource == "status":
        errors = _status_errors(attributes, objects)
    if found := tuple(errors):
        raise invalid(attributes.request.resource, attributes.name, found)


def _admin_errors(attributes: Attributes, objects: Objects) -> Iterator[FieldError]:
    spec, path = attributes.subject.get("spec") or {}, "spec"
    if attributes.request.resource.plural == "resourceclaimtemplates":
        spec, path = spec.get("spec") or {}, "spec.spec"
    namespace = named(objects, "namespaces", "", attributes.namespace)
    labels = (namespace or {}).get("metadata", {}).get("labels") or {}
    if labels.get(ADMIN_LABEL) == "true":
        return
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield FieldError(
                field=f"{path}.devices.requests[{index}].adminAccess",
                message=f"Forbidden: admin access to devices requires the `{ADMIN_LABEL}: true` "
                "label on the containing namespace",
                reason=_FORBIDDEN,
            )
            return  # the real server tells the first one only


def _status_errors(attributes: Attributes, objects: Objects) -> Iterator[FieldError]:
    new, old = _status(attributes.object), _status(attributes.old)
    if any(_changed(new, old, field) for field in ("allocation", "reservedFor")):
        yield from _binding_errors(attributes, objects)
    for driver in _changed_drivers(new, old):
        yield from _driver_errors(attributes, driver, objects)


def _binding_errors(attributes: Attributes, objects: Objects) -> Iterator[FieldError]:
    wanted = replace(
        access_of(attributes.request), subresource="binding", namespace="", name="", fields=()
    )
    if (why := refusal(wanted, objects)) is not None:
        yield FieldError(
            field="status.allocation",
            message="Forbidden: changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{wanted.verb}" permission: '
            f"resourceclaims.{_GROUP} is forbidden: {why}",
            reason=_FORBIDDEN,
        )


def _driver_errors(attributes: Attributes, driver: str, objects: Objects) -> Iterator[FieldError]:
    wanted = replace(access_of(attributes.request), subresource="driver", name=driver)
    verbs = [f"arbitrary-node:{wanted.verb}"]
    if _is_on_claim_s_node(wanted, attributes):
        verbs.insert(0, f"associated-node:{wanted.verb}")
    refusals = [refusal(replace(wanted, verb=verb), objects) for verb in verbs]
    if all(why is not None for why in refusals):
        yield FieldError(
            field="status.devices",
            message='Forbidden: changing status.devices requires resource="resourceclaims/driver", '
            f'verb="[{" ".join(verbs)}]" permission: resourceclaims.{_GROUP} "{driver}" is '
            f"forbidden: {refusals[-1]}",
            reason=_FORBIDDEN,
        )


def _is_on_claim_s_node(access: Access, attributes: Attributes) -> bool:
    """Whether a service account's token was made for a pod on the node of the allocation."""
    node = access.user.extra.get(_NODE_NAME, ())
    if _SERVICE_ACCOUNTS not in access.user.groups or len(node) != 1:
        return False
    allocation = _status(attributes.old).get("allocation") or {}
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    fields = [field for term in terms for field in term.get("matchFields") or ()]
    return any(
        field.get("key") == "metadata.name" and field.get("values") == [node[0]] for field in fields
    )


def _changed_drivers(new: Object, old: Object) -> Iterator[str]:
    before, after = _by_device(old), _by_device(new)
    changed = {key[0] for key in before.keys() | after if before.get(key) != after.get(key)}
    yield from sorted(changed)


def _by_device(status: Object) -> dict[tuple[str, ...], Any]:
    fields = ("driver", "pool", "device", "shareID")
    return {
        tuple(str(each.get(field) or "") for field in fields): each
        for each in status.get("devices") or ()
    }


def _changed(new: Object, old: Object, field: str) -> bool:
    return (new.get(field) or None) != (old.get(field) or None)


def _status(claim: Object | None) -> Object:
    status: Object = (claim or {}).get("status") or {}
    return status
