"""Which rules hold for which kind."""

from collections.abc import Callable, Iterable, Mapping

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import FieldError
from casaba.simulation.api_server.validation import core, rbac
from casaba.simulation.api_server.validation.claim_status import claim_status_errors
from casaba.simulation.api_server.validation.claims import claim_errors, template_errors
from casaba.simulation.api_server.validation.pods import pod_errors
from casaba.simulation.api_server.validation.slices import class_errors, slice_errors
from casaba.simulation.api_server.validation.webhooks import webhook_configuration_errors

Rules = Callable[[Object, Object | None], Iterable[FieldError]]

_RULES: Mapping[str, Rules] = {
    "ClusterRole": rbac.cluster_role_errors,
    "ClusterRoleBinding": rbac.cluster_role_binding_errors,
    "ConfigMap": core.config_map_errors,
    "DeviceClass": class_errors,
    "Event": core.event_errors,
    "Lease": core.lease_errors,
    "MutatingWebhookConfiguration": webhook_configuration_errors,
    "Namespace": core.namespace_errors,
    "Node": core.node_errors,
    "Pod": pod_errors,
    "ResourceClaim": claim_errors,
    "ResourceClaimTemplate": template_errors,
    "ResourceSlice": slice_errors,
    "Role": rbac.role_errors,
    "RoleBinding": rbac.role_binding_errors,
    "Secret": core.secret_errors,
    "ValidatingWebhookConfiguration": webhook_configuration_errors,
}
_STATUS_RULES: Mapping[str, Callable[[Object, Object], Iterable[FieldError]]] = {
    "ResourceClaim": claim_status_errors,
}


def kind_errors(info: ResourceInfo, new: Object, old: Object | None) -> Iterable[FieldError]:
    """What is wrong with an object, given what it was before."""
    rules = _RULES.get(info.kind)
    return rules(new, old) if rules else ()


def status_errors(info: ResourceInfo, new: Object, old: Object) -> Iterable[FieldError]:
    """What is wrong with a status, given what it was before."""
    rules = _STATUS_RULES.get(info.kind)
    return rules(new, old) if rules else ()
