"""Bad roles, bindings and webhook configurations."""

from collections.abc import Iterator

from tests.conformance.api_server.bad_object import BadObject, Change, Object, changed, put

RULE: Object = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE: Object = {"metadata": {"name": "bad"}, "rules": [RULE]}
BINDING: Object = {
    "metadata": {"name": "bad"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}],
}
WEBHOOK: Object = {
    "name": "claims.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://webhook.example.com/claims"},
    # Matches nothing, in case a server takes it after all.
    "rules": [
        {
            "operations": ["CREATE"],
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "resources": ["nothings"],
        }
    ],
}
WEBHOOKS: Object = {"metadata": {"name": "bad"}, "webhooks": [WEBHOOK]}


def bad_roles() -> Iterator[BadObject]:
    group = "rbac.authorization.k8s.io"

    def rbac(name: str, plural: str, base: Object, *changes: Change) -> BadObject:
        cluster = plural.startswith("cluster")
        return BadObject(
            name=f"{plural}: {name}",
            group=group,
            plural=plural,
            namespaced=not cluster,
            object=changed(base, *changes),
        )

    yield rbac("no verbs", "roles", ROLE, put("rules/0/verbs", []))
    yield rbac("no groups", "roles", ROLE, put("rules/0/apiGroups", []))
    yield rbac("no resources", "clusterroles", ROLE, put("rules/0/resources", []))
    yield rbac(
        "URLs in a namespace",
        "roles",
        ROLE,
        put("rules/0", {"verbs": ["get"], "nonResourceURLs": ["/"]}),
    )
    yield rbac("URLs and resources", "clusterroles", ROLE, put("rules/0/nonResourceURLs", ["/"]))
    yield rbac("name", "clusterroles", ROLE, put("metadata/name", "a%b"))
    yield rbac("role kind", "clusterrolebindings", BINDING, put("roleRef/kind", "Role"))
    yield rbac("role group", "rolebindings", BINDING, put("roleRef/apiGroup", "example.com"))
    yield rbac("no role name", "rolebindings", BINDING, put("roleRef/name", ""))
    yield rbac("subject kind", "rolebindings", BINDING, put("subjects/0/kind", "Robot"))
    yield rbac(
        "account without a namespace",
        "clusterrolebindings",
        BINDING,
        put("subjects/0", {"kind": "ServiceAccount", "name": "a"}),
    )


def _bad_conditions(path: str) -> Iterator[tuple[str, Change]]:
    for name, expression in (
        ("empty condition", " "),
        ("condition that ends early", "object.metadata."),
        ("condition of text", "'text'"),
        ("condition of anything", "object"),
        ("condition on an unknown name", "variables.x"),
        ("condition of wrong types", "1 + 'a' == 2"),
    ):
        yield name, put(path, [{"name": "c", "expression": expression}])
    yield "too many conditions", put(path, [_condition(number) for number in range(65)])


def _condition(number: int) -> Object:
    return {"name": f"c{number}", "expression": "true"}


def bad_webhook_configurations() -> Iterator[BadObject]:
    first = "webhooks/0"
    for name, change in (
        ("name", put(f"{first}/name", "claims")),
        ("no name", put(f"{first}/name", "")),
        ("no side effects told", put(f"{first}/sideEffects", ...)),
        ("side effects", put(f"{first}/sideEffects", "Some")),
        ("failure policy", put(f"{first}/failurePolicy", "Retry")),
        ("match policy", put(f"{first}/matchPolicy", "Like")),
        ("timeout", put(f"{first}/timeoutSeconds", 31)),
        ("review version", put(f"{first}/admissionReviewVersions", ["v2"])),
        ("no review versions", put(f"{first}/admissionReviewVersions", [])),
        ("operation", put(f"{first}/rules/0/operations", ["READ"])),
        ("all operations and one", put(f"{first}/rules/0/operations", ["*", "CREATE"])),
        ("no groups", put(f"{first}/rules/0/apiGroups", [])),
        ("scope", put(f"{first}/rules/0/scope", "World")),
        ("no address", put(f"{first}/clientConfig", {})),
        ("plain HTTP", put(f"{first}/clientConfig", {"url": "http://example.com"})),
        ("service without a name", put(f"{first}/clientConfig", {"service": {"namespace": "a"}})),
        (
            "selector",
            put(f"{first}/objectSelector", {"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        ),
        ("condition without a name", put(f"{first}/matchConditions", [{"expression": "true"}])),
        *_bad_conditions(f"{first}/matchConditions"),
        ("webhook twice", put("webhooks", [WEBHOOK, WEBHOOK])),
    ):
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            yield BadObject(
                name=f"{plural}: {name}",
                group="admissionregistration.k8s.io",
                plural=plural,
                namespaced=False,
                object=changed(WEBHOOKS, change),
            )
