"""What stored roles and bindings allow (Kubernetes documentation, "Using RBAC Authorization")."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.simulation.api_server.access import Access, Decision, Objects, named
from casaba.simulation.api_server.requests import Object, UserInfo
from casaba.simulation.api_server.statuses import joined

SUPERUSERS = "system:masters"
_ACCOUNT_PREFIX = "system:serviceaccount"


@dataclass(frozen=True, kw_only=True)
class _Grant:
    """A binding that names the user, and by which of its subjects."""

    binding: Object
    subject: str

    def __str__(self) -> str:
        role, metadata = self.binding["roleRef"], self.binding["metadata"]
        name = metadata["name"]
        if "namespace" in metadata:
            told = f'RoleBinding "{name}/{metadata["namespace"]}"'
        else:
            told = f'ClusterRoleBinding "{name}"'
        return f'RBAC: allowed by {told} of {role["kind"]} "{role["name"]}" to {self.subject}'


def rbac_decision(access: Access, objects: Objects) -> Decision:
    """Whether a role allows it; the reason names the first binding that does."""
    if SUPERUSERS in access.user.groups:
        return Decision(allowed=True)
    missing = []
    for grant in _grants(access.user, access.namespace, objects):
        rules = _rules_of(grant.binding, objects)
        if rules is None:
            missing.append(_not_found(grant.binding["roleRef"]))
        elif any(_allows(rule, access) for rule in rules):
            return Decision(allowed=True, reason=str(grant))
    return Decision(allowed=False, reason=f"RBAC: {joined(missing)}" if missing else "")


def granted_rules(
    user: UserInfo, namespace: str, objects: Objects
) -> tuple[list[Object], list[str]]:
    """All rules that a user's roles have in a namespace, and which roles are not there."""
    rules: list[Object] = []
    missing = []
    for grant in _grants(user, namespace, objects):
        found = _rules_of(grant.binding, objects)
        if found is None:
            missing.append(_not_found(grant.binding["roleRef"]))
        rules += found or ()
    return rules, missing


def _grants(user: UserInfo, namespace: str, objects: Objects) -> Iterator[_Grant]:
    for binding in objects("clusterrolebindings"):
        yield from _grants_of(binding, user)
    if not namespace:
        return
    for binding in objects("rolebindings"):
        if binding["metadata"].get("namespace") == namespace:
            yield from _grants_of(binding, user)


def _grants_of(binding: Object, user: UserInfo) -> Iterator[_Grant]:
    for subject in binding.get("subjects") or ():
        if _is_user(subject, user, binding["metadata"].get("namespace", "")):
            yield _Grant(binding=binding, subject=_described(subject))
            return


def _is_user(subject: Object, user: UserInfo, binding_namespace: str) -> bool:
    name = subject.get("name")
    match subject.get("kind"):
        case "User":
            return name == user.username
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            namespace = subject.get("namespace") or binding_namespace
            return user.username == f"{_ACCOUNT_PREFIX}:{namespace}:{name}"
    return False


def _described(subject: Object) -> str:
    if subject["kind"] == "ServiceAccount":
        return f'ServiceAccount "{subject["name"]}/{subject.get("namespace", "")}"'
    return f'{subject["kind"]} "{subject["name"]}"'


def _rules_of(binding: Object, objects: Objects) -> Sequence[Object] | None:
    """The rules of the role that a binding names, None if there is no such role."""
    reference = binding["roleRef"]
    if reference["kind"] == "ClusterRole":
        role = named(objects, "clusterroles", "", reference["name"])
    else:
        namespace = binding["metadata"].get("namespace", "")
        role = named(objects, "roles", namespace, reference["name"])
    return None if role is None else role.get("rules") or ()


def _not_found(role: Object) -> str:
    return f'{role["kind"].lower()}.rbac.authorization.k8s.io "{role["name"]}" not found'


def _allows(rule: Object, access: Access) -> bool:
    if not _holds(rule.get("verbs"), access.verb):
        return False
    if access.path:
        return any(_covers(url, access.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _holds(rule.get("apiGroups"), access.group)
        and _holds_resource(rule.get("resources"), access)
        and (not names or access.name in names)
    )


def _holds(allowed: Iterable[Any] | None, asked: str) -> bool:
    return any(each in ("*", asked) for each in allowed or ())


def _holds_resource(allowed: Iterable[Any] | None, access: Access) -> bool:
    asked = {"*", access.whole_resource}
    if access.subresource:
        asked.add(f"*/{access.subresource}")
    return not asked.isdisjoint(allowed or ())


def _covers(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))
