"""Rules for roles and bindings (rbac.authorization.k8s.io/v1)."""

from collections.abc import Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    invalid,
    not_supported,
    required,
)
from casaba.simulation.api_server.validation.selectors import label_selector_errors

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def role_errors(role: Object, old: Object | None) -> Errors:
    """Of a namespace's role."""
    for index, rule in enumerate(role.get("rules", ())):
        yield from _rule_errors(rule, f"rules[{index}]", namespaced=True)


def cluster_role_errors(role: Object, old: Object | None) -> Errors:
    """Of a cluster's role, which may also be made of others."""
    for index, rule in enumerate(role.get("rules", ())):
        yield from _rule_errors(rule, f"rules[{index}]", namespaced=False)
    if "aggregationRule" not in role:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = role["aggregationRule"].get("clusterRoleSelectors", ())
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(path, detail)
    for index, selector in enumerate(selectors):
        yield from label_selector_errors(f"{path}[{index}]", selector)


def _rule_errors(rule: Object, path: str, *, namespaced: bool) -> Errors:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, detail)
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        detail = "resource rules must supply at least one api group"
        yield required(f"{path}.apiGroups", detail)
    if not rule.get("resources"):
        detail = "resource rules must supply at least one resource"
        yield required(f"{path}.resources", detail)


def role_binding_errors(binding: Object, old: Object | None) -> Errors:
    """Of a binding in a namespace."""
    yield from _binding_errors(binding, old, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding_errors(binding: Object, old: Object | None) -> Errors:
    """Of a binding for the cluster."""
    yield from _binding_errors(binding, old, ("ClusterRole",), namespaced=False)


def _binding_errors(
    binding: Object, old: Object | None, kinds: Sequence[str], *, namespaced: bool
) -> Errors:
    reference = binding.get("roleRef", {})
    if reference.get("apiGroup", "") != GROUP:
        yield not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,))
    if reference.get("kind", "") not in kinds:
        yield not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if name := reference.get("name"):
        yield from each("roleRef.name", names.path_segment(name), name)
    else:
        yield required("roleRef.name")
    for index, subject in enumerate(binding.get("subjects", ())):
        yield from _subject_errors(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and reference != old.get("roleRef"):
        yield invalid("roleRef", reference, "cannot change roleRef")


def _subject_errors(subject: Object, path: str, *, namespaced: bool) -> Errors:
    name, group = subject.get("name", ""), subject.get("apiGroup", "")
    kind = subject.get("kind", "")
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from each(f"{path}.name", names.subdomain(name), name)
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in _SUBJECTS:
        if group != GROUP:
            yield not_supported(f"{path}.apiGroup", group, (GROUP,))
    else:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
