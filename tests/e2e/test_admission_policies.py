"""The chart's admission policies on the real API server: what a node's agent may write, and what
may be in a claim. Everything is tried by dry-run, so nothing of the cluster changes."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from casaba.policy.admit import judge_claim
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.charts import rendered
from tests.e2e.workloads import DRIVER, claim, slices, wait_for_slice

TEMPLATES = tuple(f"admission/{name}.yaml" for name in ("node-agent", "claims", "doctor"))
NAMESPACE = "policy-test"
AGENT = "hami-dra-driver-service-account"
OTHER = "somebody"
OWN, FOREIGN = "edge-1", "edge-2"
POLICY_TIMEOUT_S = 60.0
OTHER_DRIVER = "other.example.com"

Object = dict[str, Any]


class Cluster(NamedTuple):
    """The bed with the policies, and how to call it under each identity."""

    bed: Bed
    kubeconfigs: dict[str, Path]

    def kubectl(
        self, identity: str, *arguments: str, stdin: Object | None = None
    ) -> subprocess.CompletedProcess[str]:
        """kubectl by dry-run as one of the identities; fails or not."""
        options = [f"--kubeconfig={self.kubeconfigs[identity]}", "--dry-run=server"]
        text = None if stdin is None else json.dumps(stdin)
        return self.bed.kubectl(*arguments, *options, stdin=text, check=False)


@pytest.fixture(scope="module")
def policies() -> list[Object]:
    """What Helm makes of the templates."""
    return rendered(NAMESPACE, *TEMPLATES)


@pytest.fixture(scope="module")
def cluster(
    bed: Bed, policies: list[Object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """The policies in force, with an agent's tokens that are bound to a node and not bound."""
    objects = {"apiVersion": "v1", "kind": "List", "items": [*_identities(), *policies]}
    bed.kubectl("apply", "-f", "-", stdin=json.dumps(objects))
    try:
        folder = tmp_path_factory.mktemp("identities")
        names = {"agent": AGENT, "unbound": AGENT, "other": OTHER}
        files = {name: folder / name for name in names}
        for name, account in names.items():
            bound = () if name == "unbound" else _bound_to(f"{account}-pod")
            token = bed.kubectl("create", "token", account, f"-n={NAMESPACE}", *bound).stdout
            _write_kubeconfig(bed, files[name], token)
        cluster = Cluster(bed, {**files, "admin": bed.kubeconfig})
        _wait_until_in_force(cluster)
        yield cluster
    finally:
        bed.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=json.dumps(objects))


def _identities() -> list[Object]:
    """Accounts with more rights than the chart gives, so that only the policies refuse."""
    meta = {"namespace": NAMESPACE}
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    subjects = [
        {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE} for name in (AGENT, OTHER)
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    named = {"name": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": named},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, **meta}}
            for name in (AGENT, OTHER)
        ),
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": named, "rules": rules},
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": role,
            "subjects": subjects,
        },
        *(_pod(name) for name in (AGENT, OTHER)),
    ]


def _pod(account: str) -> Object:
    """A pod of the node, to which a token can be bound; it need not run."""
    image = {"name": "c", "image": "localhost/never:1", "imagePullPolicy": "Never"}
    spec = {
        "nodeName": OWN,
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 0,
        "containers": [image],
    }
    metadata = {"name": f"{account}-pod", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _bound_to(pod: str) -> tuple[str, ...]:
    return ("--bound-object-kind=Pod", f"--bound-object-name={pod}")


def _write_kubeconfig(bed: Bed, file: Path, token: str) -> None:
    """The administrator's kubeconfig with a token in the place of the certificate."""
    content = json.loads(bed.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token.strip()}
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))


def _wait_until_in_force(cluster: Cluster) -> None:
    """The API server reads new policies a moment after they are stored."""
    wrong = claim("policy-probe", ("gpu", "1Gi", 101))
    wait_until(
        "the policies are in force",
        lambda: all(
            cluster.kubectl(who, "create", "-f", "-", stdin=object_).returncode != 0
            for who, object_ in (("admin", wrong), ("unbound", new_slice()))
        ),
        POLICY_TIMEOUT_S,
    )


def test_the_api_server_finds_nothing_wrong_with_the_policies(
    cluster: Cluster, policies: list[Object]
) -> None:
    names = [
        policy["metadata"]["name"]
        for policy in policies
        if policy["kind"] == "ValidatingAdmissionPolicy"
    ]
    wait_until(
        "the types of all policies are checked",
        lambda: all(_type_checking(cluster.bed, name) for name in names),
        POLICY_TIMEOUT_S,
    )
    assert [_type_checking(cluster.bed, name) for name in names] == ["1 {}"] * 4


def _type_checking(bed: Bed, name: str) -> str:
    output = "-o=jsonpath={.status.observedGeneration} {.status.typeChecking}"
    return bed.kubectl("get", "validatingadmissionpolicy", name, output).stdout.strip()


# -- Slices ----------------------------------------------------------------------------------


def new_slice(name: str = OWN, pool: str | None = None, **spec: Any) -> Object:
    """A slice of a node, with changes; None takes a field away."""
    body = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": pool or name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "hami-gpu-0"}],
    } | spec
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "policy-test-"},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


SELECTOR = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["on"]}]}
    ]
}
NO_NODE = "this token of the node agent names no node"
NO_NODE_NAME = "slices with spec.nodeName only: allNodes, nodeSelector and perDeviceNodeSelection"
ELSEWHERE = f"the agent of node {OWN} can't touch slices of node {FOREIGN}"


@pytest.mark.parametrize(
    ("who", "body", "refusal"),
    [
        ("agent", new_slice(), ""),
        ("agent", new_slice(devices=[]), ""),
        ("agent", new_slice(FOREIGN), ELSEWHERE),
        ("agent", new_slice(FOREIGN, pool=OWN), ELSEWHERE),
        ("agent", new_slice(OWN, pool=FOREIGN), f"this slice is of pool {FOREIGN}"),
        ("agent", new_slice(nodeName=None, allNodes=True), NO_NODE_NAME),
        ("agent", new_slice(nodeName=None, nodeSelector=SELECTOR), NO_NODE_NAME),
        (
            "agent",
            new_slice(
                nodeName=None,
                perDeviceNodeSelection=True,
                devices=[{"name": "a", "nodeName": FOREIGN}],
            ),
            NO_NODE_NAME,
        ),
        ("agent", new_slice(driver=OTHER_DRIVER), f"only, not of {OTHER_DRIVER}"),
        ("unbound", new_slice(), NO_NODE),
        ("unbound", new_slice(nodeName=None, allNodes=True), NO_NODE),
        ("other", new_slice(FOREIGN), ""),
        ("admin", new_slice(nodeName=None, allNodes=True), ""),
    ],
)
def test_creating_slices(cluster: Cluster, who: str, body: Object, refusal: str) -> None:
    decided(cluster.kubectl(who, "create", "-f", "-", stdin=body), refusal)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize(("node", "refusal"), [(OWN, ""), (FOREIGN, ELSEWHERE)])
def test_the_beta_versions_are_no_way_around(
    cluster: Cluster, version: str, node: str, refusal: str
) -> None:
    api_version = f"resource.k8s.io/{version}"
    if api_version not in cluster.bed.kubectl("api-versions").stdout.split():
        pytest.skip(f"this API server does not serve {api_version}, which is off by default")
    body = new_slice(node, devices=[]) | {"apiVersion": api_version}
    decided(cluster.kubectl("agent", "create", "-f", "-", stdin=body), refusal)
    wrong = claim("beta", ("gpu", "1Gi", 101)) | {"apiVersion": api_version}
    if version == "v1beta1":
        (request,) = wrong["spec"]["devices"]["requests"]
        request |= request.pop("exactly")
    decided(cluster.kubectl("admin", "create", "-f", "-", stdin=wrong), "cores: 101 is not")


@pytest.mark.parametrize(
    ("who", "node", "refusal"),
    [
        ("agent", OWN, ""),
        ("agent", FOREIGN, ELSEWHERE),
        ("unbound", OWN, NO_NODE),
        ("other", FOREIGN, ""),
    ],
)
@pytest.mark.parametrize("verb", ["patch", "delete"])
def test_changing_and_deleting_published_slices(
    cluster: Cluster, verb: str, who: str, node: str, refusal: str
) -> None:
    wait_for_slice(cluster.bed, node)
    name = slices(cluster.bed, node)[0]["metadata"]["name"]
    change = ["--type=merge", '-p={"metadata": {"labels": {"a": "b"}}}'] if verb == "patch" else []
    decided(cluster.kubectl(who, verb, "resourceslice", name, *change), refusal)


def decided(done: subprocess.CompletedProcess[str], refusal: str) -> None:
    """Accepted, or refused by a policy with this sentence."""
    if not refusal:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode != 0, done.stdout
    said = " ".join(done.stderr.split())
    assert "denied request: " in said
    assert refusal in said


# -- Status of claims ------------------------------------------------------------------------

CLAIM = "policy-test"
RESULT = {
    "request": "gpu",
    "driver": DRIVER,
    "pool": OWN,
    "device": "hami-gpu-0",
    "shareID": str(uuid.uuid4()),
    "consumedCapacity": {"cores": "1", "memory": "1Gi"},
}
FOREIGN_RESULT = RESULT | {"pool": FOREIGN, "shareID": str(uuid.uuid4())}
OTHER_RESULT = RESULT | {"driver": OTHER_DRIVER, "shareID": str(uuid.uuid4())}
ALLOCATION = {
    "devices": {"results": [RESULT, FOREIGN_RESULT, OTHER_RESULT]},
    "allocationTimestamp": "2026-01-01T00:00:00Z",
}
# No pod, whose absence the controller would find out.
CONSUMER = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": str(uuid.uuid4())}


def told(result: Object) -> Object:
    """What a driver says of an allocated device."""
    same = {key: result[key] for key in ("driver", "pool", "device", "shareID")}
    return same | {"data": {"cores": 1}}


@pytest.fixture(scope="module")
def allocated(cluster: Cluster) -> Iterator[None]:
    """A claim with devices of two nodes and two drivers, as no scheduler would allocate it."""
    namespace = f"-n={NAMESPACE}"
    made = claim(CLAIM, ("gpu", "1Gi", 1))
    cluster.bed.kubectl("create", namespace, "-f", "-", stdin=json.dumps(made))
    status = {
        "allocation": ALLOCATION,
        "reservedFor": [CONSUMER],
        "devices": [told(FOREIGN_RESULT), told(OTHER_RESULT)],
    }
    patch = ["--subresource=status", "--type=merge", f"-p={json.dumps({'status': status})}"]
    cluster.bed.kubectl("patch", namespace, "resourceclaim", CLAIM, *patch)
    wait_until(
        "the policy of claims' status is in force",
        lambda: _status_patch(cluster, "unbound", {"devices": []}).returncode != 0,
        POLICY_TIMEOUT_S,
    )
    yield
    cluster.bed.kubectl("delete", namespace, "resourceclaim", CLAIM, "--wait=false")


def _status_patch(cluster: Cluster, who: str, status: Object) -> subprocess.CompletedProcess[str]:
    patch = ["--subresource=status", "--type=merge", f"-p={json.dumps({'status': status})}"]
    return cluster.kubectl(who, "patch", f"-n={NAMESPACE}", "resourceclaim", CLAIM, *patch)


NOT_MINE = f"the agent of node {OWN} reports devices of driver {DRIVER} and pool {OWN} only"
DEVICES_ONLY = "the node agent changes status.devices only"
KEPT = [told(FOREIGN_RESULT), told(OTHER_RESULT)]


@pytest.mark.usefixtures("allocated")
@pytest.mark.parametrize(
    ("who", "status", "refusal"),
    [
        ("agent", {"devices": [*KEPT, told(RESULT)]}, ""),
        ("agent", {"devices": KEPT}, ""),
        ("agent", {"devices": [told(RESULT)]}, NOT_MINE),
        ("agent", {"devices": [told(FOREIGN_RESULT) | {"data": {}}, KEPT[1]]}, NOT_MINE),
        ("agent", {"devices": [KEPT[0], told(OTHER_RESULT) | {"data": {}}]}, NOT_MINE),
        ("agent", {"reservedFor": None}, DEVICES_ONLY),
        ("agent", {"reservedFor": None, "allocation": None, "devices": None}, DEVICES_ONLY),
        ("unbound", {"devices": [*KEPT, told(RESULT)]}, NO_NODE),
        ("other", {"reservedFor": None}, ""),
    ],
)
def test_writing_the_status_of_a_claim(
    cluster: Cluster, who: str, status: Object, refusal: str
) -> None:
    decided(_status_patch(cluster, who, status), refusal)


# -- Claims and templates --------------------------------------------------------------------


def asking(form: Object | None = None, config: Object | None = None, **amounts: Any) -> Object:
    """A claim's spec with one request of our class."""
    exactly: Object = {"deviceClassName": DRIVER} | (form or {})
    if amounts:
        exactly["capacity"] = {"requests": amounts}
    devices: Object = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if config is not None:
        devices["config"] = [{"opaque": {"driver": DRIVER, "parameters": config}}]
    return {"devices": devices}


def first_of(*amounts: Object, class_name: str = DRIVER) -> Object:
    """A claim's spec with alternatives."""
    alternatives = [
        {"name": f"a{index}", "deviceClassName": class_name, "capacity": {"requests": one}}
        for index, one in enumerate(amounts)
    ]
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}}


def parameters(**fields: Any) -> Object:
    """SliceParameters with fields."""
    return {"apiVersion": "casaba.dev/v1alpha1", "kind": "SliceParameters"} | fields


def of_another_class(spec: Object) -> Object:
    """The same for a class that is not ours."""
    text = json.dumps(spec).replace(f'"deviceClassName": "{DRIVER}"', '"deviceClassName": "other"')
    return dict(json.loads(text))


HAMI = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
CLAIMS: dict[str, tuple[Object, str]] = {
    "scenario": (asking(cores=50, memory="10Gi"), ""),
    "whole card": (asking(), ""),
    "no cap": (asking(cores=0, memory="1Mi"), ""),
    "full": (asking(cores=100), ""),
    "half a core": (asking(cores="500m"), ""),
    "alternatives": (first_of({"memory": "40Gi"}, {"memory": "10Gi"}), ""),
    "two": (asking({"count": 2}), ""),
    "all": (asking({"allocationMode": "All"}), ""),
    "weight": (asking(config=parameters(weight=1000)), ""),
    "all parameters": (
        asking(config=parameters(weight=1, priority=0, corePolicy="disable")),
        "",
    ),
    "no parameters": (asking(config=parameters()), ""),
    "other class": (of_another_class(asking(gpumem=1, cores=500)), ""),
    "other classes": (first_of({"gpumem": 1}, class_name="other"), ""),
    "nothing": ({"devices": {}}, ""),
    "null": ({"devices": {"requests": None, "config": None}}, ""),
    "classic name": (asking(gpumem=10240), "no card has the capacity gpumem; there are cores"),
    "classic names": (asking(gpumem=10240, gpucores=30), "no card has the capacity gpu"),
    "full name": (
        asking({"capacity": {"requests": {f"{DRIVER}/memory": "1Gi"}}}),
        f"the capacity {DRIVER}/memory;",
    ),
    "second alternative": (first_of({"memory": "1Gi"}, {"mem": "1Gi"}), "the capacity mem;"),
    "cores": (asking(cores=101), "cores: 101 is not a percentage"),
    "little more": (asking(cores="100001m"), "cores: 100001m is not a percentage"),
    "negative": (asking(cores=-1), "cores: -1 is not a percentage"),
    "bytes": (asking(memory="10240"), "memory: 10240 is less than the smallest slice, 1Mi"),
    "no memory": (asking(memory="0"), "memory: 0 is less than"),
    "late cores": (first_of({"cores": 1}, {"cores": 200}), "cores: 200 is not"),
    "count": (asking({"count": 33}), "count: 33 devices are more than a claim can hold"),
    "kind": (asking(config=parameters(kind="Slice")), "not Slice of casaba.dev/v1alpha1;"),
    "untyped": (asking(config={}), "of casaba.dev/v1alpha1, not nothing;"),
    "hami": (asking(config=HAMI), "not GpuConfig of resource.nvidia.com/v1beta1; leave the entry"),
    "field": (asking(config=parameters(wieght=1)), "no such field: wieght; there are weight"),
    "light": (asking(config=parameters(weight=0)), "parameters: wrong weight;"),
    "heavy": (asking(config=parameters(weight=1001)), "parameters: wrong weight;"),
    "text": (asking(config=parameters(weight="5")), "parameters: wrong weight;"),
    "fraction": (asking(config=parameters(weight=1.5)), "parameters: wrong weight;"),
    "no weight": (asking(config=parameters(weight=None)), "parameters: wrong weight;"),
    "huge": (asking(config=parameters(weight=10**30)), "parameters: wrong weight;"),
    "priority": (asking(config=parameters(priority=2)), "parameters: wrong priority;"),
    "policy": (
        asking(config=parameters(priority="0", corePolicy="FORCE")),
        "parameters: wrong priority corePolicy; allowed are",
    ),
    "only config": (
        of_another_class(asking(config=parameters(weight=0))),
        "parameters: wrong weight;",
    ),
}


def as_claim(spec: Object) -> Object:
    """A claim with this spec."""
    return claim("policy-case") | {"spec": spec}


def as_template(spec: Object) -> Object:
    """A template of claims with this spec."""
    return claim("policy-case") | {"kind": "ResourceClaimTemplate", "spec": {"spec": spec}}


@pytest.mark.parametrize("case", CLAIMS)
@pytest.mark.parametrize("made", [as_claim, as_template])
def test_creating_claims_and_templates(
    cluster: Cluster, made: Callable[[Object], Object], case: str
) -> None:
    spec, refusal = CLAIMS[case]
    decided(cluster.kubectl("admin", "create", "-f", "-", stdin=made(spec)), refusal)


@pytest.mark.parametrize("case", CLAIMS)
def test_the_webhook_refuses_the_same(case: str) -> None:
    spec, refusal = CLAIMS[case]
    assert bool(judge_claim(spec, (), {}).refusals) == bool(refusal)


def test_admin_access_is_refused_where_a_namespace_would_admit_it(cluster: Cluster) -> None:
    label = "resource.kubernetes.io/admin-access=true"
    cluster.bed.kubectl("label", "namespace", NAMESPACE, label)
    body = as_claim(asking({"adminAccess": True}))
    done = cluster.kubectl("admin", "create", f"-n={NAMESPACE}", "-f", "-", stdin=body)
    decided(done, "adminAccess: this driver does not give it")
    assert judge_claim(body["spec"], (), {}).refusals
