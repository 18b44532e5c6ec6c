"""A cluster and a node on which nothing is wrong, to be spoiled by tests."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from casaba.model.ids import NodeName
from casaba.model.node_use import NodeUse
from casaba.policy.diagnosis.cluster.observations import (
    AgentMetrics,
    Canary,
    ClusterObservations,
    ServedCertificate,
    Trial,
    Webhooks,
)
from casaba.policy.diagnosis.host.observations import (
    CdiSeen,
    CheckpointSeen,
    DriverSeen,
    GuardSeen,
    HostObservations,
    KubeletSeen,
    NvmlSeen,
    RoomSeen,
    RuntimeSeen,
    ToolkitSeen,
)
from casaba.policy.slices import slice_spec
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.node_report import NodeReport
from tests.unit.values import A10

Object = dict[str, Any]

NOW_S = 1_800_000_000.0
NOW = datetime.fromtimestamp(NOW_S, UTC)
NODE = "edge-1"


def at(seconds: float) -> str:
    """A time relative to now as Kubernetes writes it."""
    return datetime.fromtimestamp(NOW_S + seconds, UTC).isoformat().replace("+00:00", "Z")


def node(name: str = NODE, **changes: Any) -> Object:
    """A labelled one."""
    metadata: Object = {"name": name, "labels": {"gpu": "on"}, "annotations": {}}
    info = {"kubeletVersion": "v1.36.1", "containerRuntimeVersion": "containerd://2.1.4"}
    status = {"nodeInfo": info, "capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}
    metadata |= changes.pop("metadata", {})
    status |= changes
    return {"metadata": metadata, "status": status}


def pod(component: str, name: str, *, ready: bool = True, release: str = "casaba") -> Object:
    """One of casaba's."""
    condition = {"type": "Ready", "status": str(ready)}
    return {
        "metadata": {
            "name": name,
            "namespace": "hami-system",
            "labels": {
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/instance": release,
            },
        },
        "spec": {"nodeName": NODE},
        "status": {"phase": "Running", "conditions": [condition]},
    }


def device_class(name: str = DRIVER_NAME, expression: str | None = None, **spec: Any) -> Object:
    """Ours, if not told otherwise."""
    chosen = expression or f'device.driver == "{DRIVER_NAME}"'
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": chosen}}]} | spec,
    }


def slice_of(name: str = NODE, *, cards: int = 1) -> Object:
    """A node's published cards."""
    spec = slice_spec(NodeName(name), (A10,) * cards, 1)
    return {"metadata": {"name": f"{name}-cards"}, "spec": spec}


def bundle(*, ends_in_s: float = 90 * 86400.0) -> str:
    """A caBundle."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "casaba")])
    now = datetime.fromtimestamp(NOW_S, UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(seconds=ends_in_s))
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def webhooks(
    *,
    name: str = "hami-dra-webhook",
    ca: str | None = None,
    policy: str = "Fail",
    left_alone: tuple[str, ...] = ("kube-system", "hami-system"),
    **metadata: Any,
) -> Webhooks:
    """Both configurations of the chart; some namespaces are left alone."""
    conditions = [
        {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*left_alone]},
    ]

    def configuration(hook: str) -> Object:
        client = {"caBundle": BUNDLE if ca is None else ca}
        entry = {
            "name": hook,
            "clientConfig": client,
            "failurePolicy": policy,
            "namespaceSelector": {"matchExpressions": conditions},
        }
        return {"metadata": {"name": name, **metadata}, "webhooks": [entry]}

    return Webhooks(
        mutating=(configuration("mutate.hami.io"),), validating=(configuration("validate.hami.io"),)
    )


BUNDLE = bundle()

CONVERTED: Object = {
    "spec": {
        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu-main"}]}}],
        "resourceClaims": [{"name": "gpu-main"}],
    }
}

UNCONVERTED: Object = {
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
}


def claim(**status: Any) -> Object:
    """One that a pod holds."""
    result = {"driver": DRIVER_NAME, "consumedCapacity": {"memory": "1Gi"}}
    return {
        "metadata": {"namespace": "team", "name": "claim"},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "tenant"}],
            **status,
        },
    }


def event(reason: str, type: str = "Warning", *, age_s: float = 60.0, about: str = NODE) -> Object:
    """An agent's word on its Node."""
    return {
        "type": type,
        "reason": reason,
        "message": "a sentence; do this",
        "lastTimestamp": at(-age_s),
        "involvedObject": {"kind": "Node", "name": about},
    }


def lease(name: str, *, age_s: float = 2.0, holder: str = "casaba-1") -> Object:
    """A Lease that was renewed so long ago."""
    return {
        "metadata": {"name": name, "namespace": "hami-system"},
        "spec": {"holderIdentity": holder, "renewTime": at(-age_s)},
    }


CLUSTER = ClusterObservations(
    now_s=NOW_S,
    version={"major": "1", "minor": "36", "gitVersion": "v1.36.1"},
    resource_api=True,
    canary=Canary(local_before_s=NOW_S, local_after_s=NOW_S + 0.1, server_s=NOW_S),
    schedulers=({"metadata": {"name": "kube-scheduler-a"}, "spec": {"containers": []}},),
    nodes=(node(), {"metadata": {"name": "other"}}),
    pods=(
        pod("node-agent", "agent-1"),
        pod("webhook", "webhook-1"),
        pod("webhook", "webhook-2"),
        pod("controller", "controller-1"),
    ),
    slices=(slice_of(),),
    claims=(),
    classes=(device_class(),),
    webhooks=webhooks(),
    trial=Trial(pod=CONVERTED, namespace="default"),
    lease=lease("casaba-controller"),
    node_leases=(lease(NODE),),
    agents={NODE: AgentMetrics(registered=True, problems=(), unguarded=())},
    served={"webhook-1": ServedCertificate(ends_s=NOW_S + 3600, authority_ends_s=None)},
    events=(),
    cert_manager=False,
)

REPORT = NodeReport(
    release="1.0.0",
    guard="1.0.0-0123456789ab",
    registered=True,
    problems=(),
    use=NodeUse(
        node=NODE,
        gpus=(A10,),
        readings={},
        slices=(),
        guards=(),
        foreign={},
        boot_time_ns=1,
        pods_told=True,
    ),
)

HOST = HostObservations(
    driver=DriverSeen(root="/", library="/usr/lib64/libnvidia-ml.so.1", elsewhere=()),
    nvml=NvmlSeen(driver_version="580.126.09", cards=("NVIDIA A10",)),
    toolkit=ToolkitSeen(programs=("/usr/bin/nvidia-ctk", "/usr/bin/nvidia-cdi-hook"), missing=None),
    cdi=CdiSeen(
        folder="/var/run/cdi",
        exists=True,
        specs=("casaba.dev-card.json", "casaba.dev-guard.json"),
        damaged=(),
    ),
    runtime=RuntimeSeen(version="2.1.4", source="/etc/containerd/config.toml", cdi_enabled=None),
    kubelet=KubeletSeen(
        folder="/var/lib/kubelet",
        has_registry=True,
        plugin_sockets=("dra.sock",),
        registration_sockets=("reg.sock",),
        pods_told=None,
    ),
    agent=REPORT,
    run_filesystem=("/run/casaba", "tmpfs"),
    guard=GuardSeen(folder="/var/lib/casaba/guard", whole=("1.0.0-0123456789ab",), broken=()),
    checkpoint=CheckpointSeen(folder="/var/lib/kubelet/plugins/x/claims", entries=2, damaged=()),
    clock_is_set=True,
    leftovers=(),
    room=(RoomSeen(folder="/var/lib/casaba", free_bytes=1 << 30, needed_bytes=1 << 26),),
)
