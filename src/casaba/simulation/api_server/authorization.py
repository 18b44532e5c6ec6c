"""Who may do what: the node authorizer and RBAC over stored roles, in the real server's words."""

from casaba.simulation.api_server.access import Access, Decision, Objects, access_of
from casaba.simulation.api_server.node_authorization import node_decision
from casaba.simulation.api_server.rbac import rbac_decision
from casaba.simulation.api_server.requests import ResourceRequest, UserInfo
from casaba.simulation.api_server.statuses import ApiError


def authorized(request: ResourceRequest, objects: Objects) -> str | None:
    """None if a request is allowed, else the sentence that refuses it."""
    return refusal(access_of(request), objects)


def check_authorized(request: ResourceRequest, objects: Objects) -> None:
    """Raises ApiError 403 unless a request is allowed."""
    if (why := authorized(request, objects)) is None:
        return
    access = access_of(request)
    details = {"name": access.name, "group": access.group, "kind": access.resource}
    subject = f'{request.resource.qualified} "{access.name}"' if access.name else ""
    raise ApiError(
        403,
        "Forbidden",
        f"{subject or request.resource.qualified} is forbidden: {why}",
        details={key: value for key, value in details.items() if value},
    )


def check_path_authorized(user: UserInfo, verb: str, path: str, objects: Objects) -> None:
    """Raises ApiError 403 unless a user may do that on a path which is no resource."""
    why = refusal(Access(user=user, verb=verb, path=path), objects)
    if why is not None:
        raise ApiError(403, "Forbidden", f"forbidden: {why}")


def refusal(access: Access, objects: Objects) -> str | None:
    """None if it is allowed, else a sentence with the reasons, if there are any."""
    decision = decided(access, objects)
    if decision.allowed:
        return None
    return f"{access}: {decision.reason}" if decision.reason else str(access)


def decided(access: Access, objects: Objects) -> Decision:
    """The first authorizer that allows wins; none of them can forbid."""
    by_role = rbac_decision(access, objects)
    if by_role.allowed:
        return by_role
    of_node = node_decision(access, objects)
    if of_node is None or not (of_node.allowed or of_node.reason):
        return by_role
    if of_node.allowed or not by_role.reason:
        return of_node
    return Decision(allowed=False, reason=f"{of_node.reason}\n{by_role.reason}")
