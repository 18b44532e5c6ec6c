"""The chart's admission policies on the real API server: what a node's agent may write, and what
may be in a claim. Everything is tried by dry-run, so nothing of the cluster changes."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from casaba.policy.admit import judge_claim
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.charts import rendered
from tests.e2e.policy_claims import CLAIMS, as_claim, as_template, asking
from tests.e2e.policy_site import (
    AGENT,
    FOREIGN,
    NAMESPACE,
    OTHER,
    OTHER_DRIVER,
    OWN,
    POLICY_TIMEOUT_S,
    Cluster,
    Object,
    bound_to,
    identities,
    new_slice,
    wait_until_in_force,
    write_kubeconfig,
)
from tests.e2e.workloads import DRIVER, claim, slices, wait_for_slice

TEMPLATES = tuple(f"admission/{name}.yaml" for name in ("node-agent", "claims", "doctor"))


@pytest.fixture(scope="module")
def policies() -> list[Object]:
    """What Helm makes of the templates."""
    return rendered(NAMESPACE, *TEMPLATES)


@pytest.fixture(scope="module")
def cluster(
    bed: Bed, policies: list[Object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """The policies in force, with an agent's tokens that are bound to a node and not bound."""
    objects = {"apiVersion": "v1", "kind": "List", "items": [*identities(), *policies]}
    bed.kubectl("apply", "-f", "-", stdin=json.dumps(objects))
    try:
        folder = tmp_path_factory.mktemp("identities")
        names = {"agent": AGENT, "unbound": AGENT, "other": OTHER}
        files = {name: folder / name for name in names}
        for name, account in names.items():
            bound = () if name == "unbound" else bound_to(f"{account}-pod")
            token = bed.kubectl("create", "token", account, f"-n={NAMESPACE}", *bound).stdout
            write_kubeconfig(bed, files[name], token)
        cluster = Cluster(bed, {**files, "admin": bed.kubeconfig})
        wait_until_in_force(cluster)
        yield cluster
    finally:
        bed.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=json.dumps(objects))


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
