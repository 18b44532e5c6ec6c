"""What a user may do, listed: the status of a SelfSubjectRulesReview (authorization.k8s.io/v1)."""

from collections.abc import Iterable

from casaba.simulation.api_server.access import Objects
from casaba.simulation.api_server.node_authorization import node_name
from casaba.simulation.api_server.rbac import granted_rules
from casaba.simulation.api_server.requests import Object, UserInfo
from casaba.simulation.api_server.statuses import bad_request, joined

_RESOURCE_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_FIELDS = ("verbs", "nonResourceURLs")
_OF_NODES = "node authorizer does not support user rule resolution"


def rules_status(user: UserInfo, namespace: str, objects: Objects) -> Object:
    """What roles let a user do in a namespace; of a kubelet more is true. Raises ApiError 400."""
    if not namespace:
        raise bad_request("no namespace on request")
    rules, missing = granted_rules(user, namespace, objects)
    is_node = node_name(user) is not None
    errors = [_OF_NODES, *missing] if is_node else missing
    return {
        "resourceRules": _only(_RESOURCE_FIELDS, rules, "resources"),
        "nonResourceRules": _only(_PATH_FIELDS, rules, "nonResourceURLs"),
        "incomplete": is_node,
        **({"evaluationError": joined(errors)} if errors else {}),
    }


def _only(fields: Iterable[str], rules: Iterable[Object], needed: str) -> list[Object]:
    return [
        {field: rule[field] for field in fields if rule.get(field)}
        for rule in rules
        if rule.get(needed)
    ]
