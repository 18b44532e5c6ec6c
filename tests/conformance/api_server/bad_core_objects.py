"""Bad pods, namespaces, nodes, events, leases, ConfigMaps and Secrets."""

from collections.abc import Iterator

from tests.conformance.api_server.bad_object import BadObject, Change, Object, changed, put

LONG = "a" * 64
POD: Object = {
    "metadata": {"name": "bad"},
    "spec": {"containers": [{"name": "main", "image": "example.com/image:1"}]},
}
LEASE: Object = {"metadata": {"name": "bad"}, "spec": {}}
EVENT: Object = {"metadata": {"name": "bad"}, "involvedObject": {}}
NODE: Object = {"metadata": {"name": "bad"}, "spec": {}}
CONFIG_MAP: Object = {"metadata": {"name": "bad"}, "data": {}}


def _pod(name: str, *changes: Change) -> BadObject:
    return BadObject(name=f"pod: {name}", plural="pods", object=changed(POD, *changes))


def bad_metadata() -> Iterator[BadObject]:
    for name, changes in (
        ("no name", [put("metadata/name", ...)]),
        ("upper case", [put("metadata/name", "Bad")]),
        ("underscore", [put("metadata/name", "bad_name")]),
        ("too long", [put("metadata/name", "a" * 254)]),
        ("bad prefix", [put("metadata/name", ...), put("metadata/generateName", "Bad-")]),
        ("label key", [put("metadata/labels", {"a b": "c"})]),
        ("label key with two slashes", [put("metadata/labels", {"a/b/c": "d"})]),
        ("label key without a name", [put("metadata/labels", {"example.com/": "d"})]),
        ("label value", [put("metadata/labels", {"a": "b c"})]),
        ("label value too long", [put("metadata/labels", {"a": LONG})]),
        ("annotation key", [put("metadata/annotations", {"a b": "c"})]),
        ("annotations too large", [put("metadata/annotations", {"a": "b" * (257 << 10)})]),
        ("finalizer", [put("metadata/finalizers", ["a b"])]),
        ("finalizer of nobody", [put("metadata/finalizers", ["mine"])]),
        (
            "contradicting finalizers",
            [put("metadata/finalizers", ["orphan", "foregroundDeletion"])],
        ),
        (
            "empty owner",
            [
                put(
                    "metadata/ownerReferences",
                    [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
                )
            ],
        ),
        ("another namespace", [put("metadata/namespace", "elsewhere")]),
    ):
        yield BadObject(
            name=f"metadata: {name}", plural="configmaps", object=changed(CONFIG_MAP, *changes)
        )
    for name in ("Bad", "bad.name", LONG):
        yield BadObject(
            name=f"namespace {name[:10]}",
            plural="namespaces",
            namespaced=False,
            object={"metadata": {"name": name}},
        )


def bad_pods() -> Iterator[BadObject]:
    first = "spec/containers/0"
    yield _pod("no containers", put("spec/containers", []))
    yield _pod("no spec", put("spec", ...))
    yield _pod("container without a name", put(f"{first}/name", ...))
    yield _pod("container name", put(f"{first}/name", "Main"))
    yield _pod("container name with dots", put(f"{first}/name", "a.b"))
    yield _pod("no image", put(f"{first}/image", ...))
    yield _pod("same name twice", put("spec/containers", POD["spec"]["containers"] * 2))
    yield _pod(
        "init container of the same name", put("spec/initContainers", POD["spec"]["containers"])
    )
    yield _pod("restart policy", put("spec/restartPolicy", "Sometimes"))
    yield _pod("dns policy", put("spec/dnsPolicy", "Mine"))
    yield _pod("pull policy", put(f"{first}/imagePullPolicy", "Often"))
    yield _pod("termination message policy", put(f"{first}/terminationMessagePolicy", "Mail"))
    yield _pod("port", put(f"{first}/ports", [{"containerPort": 70000}]))
    yield _pod("protocol", put(f"{first}/ports", [{"containerPort": 80, "protocol": "ICMP"}]))
    yield _pod("variable", put(f"{first}/env", [{"name": "A=B", "value": "c"}]))
    yield _pod("variable without a name", put(f"{first}/env", [{"name": "", "value": "c"}]))
    yield _pod(
        "mount without a volume", put(f"{first}/volumeMounts", [{"name": "v", "mountPath": "/v"}])
    )
    yield _pod("volume twice", put("spec/volumes", [{"name": "v"}, {"name": "v"}]))
    yield _pod("volume name", put("spec/volumes", [{"name": "V"}]))
    yield _pod(
        "request over limit",
        put(f"{first}/resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    )
    yield _pod("negative amount", put(f"{first}/resources", {"limits": {"cpu": "-1"}}))
    yield _pod("no standard resource", put(f"{first}/resources", {"limits": {"gpu": "1"}}))
    yield _pod(
        "extended resource without a limit",
        put(f"{first}/resources", {"requests": {"example.com/gpu": "1"}}),
    )
    yield _pod(
        "half an extended resource",
        put(f"{first}/resources", {"limits": {"example.com/gpu": "500m"}}),
    )
    yield _pod("claim that the pod lacks", put(f"{first}/resources", {"claims": [{"name": "gpu"}]}))
    yield _pod("claim without a name", put("spec/resourceClaims", [{"resourceClaimName": "c"}]))
    yield _pod("claim without a source", put("spec/resourceClaims", [{"name": "gpu"}]))
    yield _pod(
        "claim with two sources",
        put(
            "spec/resourceClaims",
            [{"name": "gpu", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
        ),
    )
    yield _pod(
        "claim twice",
        put(
            "spec/resourceClaims",
            [{"name": "gpu", "resourceClaimName": "c"}, {"name": "gpu", "resourceClaimName": "d"}],
        ),
    )
    yield _pod(
        "claim of a bad name",
        put("spec/resourceClaims", [{"name": "gpu", "resourceClaimName": "C"}]),
    )
    yield _pod("node name", put("spec/nodeName", "Node"))
    yield _pod("host name", put("spec/hostname", "a.b"))
    yield _pod("deadline", put("spec/activeDeadlineSeconds", 0))
    yield _pod("node selector", put("spec/nodeSelector", {"a b": "c"}))
    yield _pod(
        "toleration without a key", put("spec/tolerations", [{"operator": "Equal", "value": "a"}])
    )
    yield _pod("toleration operator", put("spec/tolerations", [{"key": "a", "operator": "Like"}]))
    yield _pod(
        "toleration value",
        put("spec/tolerations", [{"key": "a", "operator": "Exists", "value": "b"}]),
    )
    yield _pod(
        "toleration effect",
        put("spec/tolerations", [{"key": "a", "operator": "Exists", "effect": "Some"}]),
    )
    yield _pod(
        "toleration seconds",
        put(
            "spec/tolerations",
            [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}],
        ),
    )
    yield _pod(
        "affinity operator",
        put(
            "spec/affinity",
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "Is"}]}
                        ]
                    }
                }
            },
        ),
    )


def bad_others() -> Iterator[BadObject]:
    def lease(name: str, *changes: Change) -> BadObject:
        return BadObject(
            name=f"lease: {name}",
            group="coordination.k8s.io",
            plural="leases",
            object=changed(LEASE, *changes),
        )

    yield lease("duration", put("spec/leaseDurationSeconds", 0))
    yield lease("transitions", put("spec/leaseTransitions", -1))
    yield BadObject(
        name="event of another namespace",
        plural="events",
        object=changed(EVENT, put("involvedObject/namespace", "elsewhere")),
    )
    for name, taints in (
        ("key", [{"key": "a b", "effect": "NoSchedule"}]),
        ("no effect", [{"key": "a"}]),
        ("effect", [{"key": "a", "effect": "Some"}]),
        ("twice", [{"key": "a", "effect": "NoSchedule"}] * 2),
    ):
        yield BadObject(
            name=f"node taint: {name}",
            plural="nodes",
            namespaced=False,
            object=changed(NODE, put("spec/taints", taints)),
        )
    yield BadObject(
        name="config map key",
        plural="configmaps",
        object=changed(CONFIG_MAP, put("data", {"a b": "c"})),
    )
    yield BadObject(
        name="key of text and of bytes",
        plural="configmaps",
        object=changed(CONFIG_MAP, put("data", {"a": "c"}), put("binaryData", {"a": "YQ=="})),
    )
    yield BadObject(
        name="secret without its keys",
        plural="secrets",
        object={"metadata": {"name": "bad"}, "type": "kubernetes.io/tls"},
    )
