"""etcd, API server, scheduler and controller-manager in the cloud's namespace."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import audit, certificates, network, processes
from tests.cluster.build import Programs
from tests.cluster.certificates import KeyPair
from tests.cluster.processes import Daemon
from tests.cluster.settings import (
    API_PORT,
    CLOUD,
    CLOUD_ADDRESS,
    SERVICE_ADDRESS,
    BedSettings,
)

API_URL = f"https://{CLOUD_ADDRESS}:{API_PORT}"
AGENT_USER = "casaba-node-agent"
_ETCD_URL = "http://127.0.0.1:2379"
_ETCD_PEER_URL = "http://127.0.0.1:2380"
_SERVICE_RANGE = "10.96.0.0/16"
_ISSUER = "https://kubernetes.default.svc"
_REPOSITORY = Path(__file__).parents[2]


def write_identities(settings: BedSettings) -> KeyPair:
    """All certificates and kubeconfigs of the cloud; the cluster's authority comes back."""
    pki = settings.pki
    authority = certificates.authority(pki, "ca")
    front = certificates.authority(pki, "front-proxy-ca")
    certificates.client(front, pki, "front-proxy", "front-proxy-client")
    certificates.client(
        authority, pki, "kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"]
    )
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    certificates.server(
        authority, pki, "apiserver", [*names, CLOUD_ADDRESS, SERVICE_ADDRESS, "127.0.0.1"]
    )
    certificates.signing_key(pki, "service-accounts")
    for user in ("system:kube-scheduler", "system:kube-controller-manager"):
        name = user.removeprefix("system:")
        identity = certificates.client(authority, pki, name, user)
        certificates.write_kubeconfig(settings.cloud / name, API_URL, authority, identity)
    admin = certificates.client(authority, pki, "admin", "admin", ["system:masters"])
    forwarded = f"https://127.0.0.1:{settings.api_forward_port}"
    certificates.write_kubeconfig(settings.kubeconfig, forwarded, authority, admin)
    return authority


def open_forward_port(address: str = "127.0.0.1") -> socket.socket:
    """A listening loopback socket on a free port, for the forward."""
    return socket.create_server((address, 0))


def start_forward(settings: BedSettings, listener: socket.socket) -> None:
    """Lead the loopback port to the API server."""
    descriptor = listener.fileno()
    os.set_inheritable(descriptor, True)
    processes.start(_forward(settings, descriptor))


def audit_log(settings: BedSettings) -> Path:
    """What service accounts asked of the API server; for `audit.calls`."""
    return settings.cloud / "audit.log"


def start_storage_and_api(settings: BedSettings, programs: Programs) -> None:
    """Start etcd and the API server; both need a few seconds until they answer."""
    processes.start(_etcd(settings, programs))
    processes.start(_api_server(settings, programs))


def restart_api_server(settings: BedSettings, programs: Programs) -> None:
    """End the API server and start it again; it needs a few seconds until it answers."""
    processes.stop(_api_server(settings, programs))
    processes.start(_api_server(settings, programs))


def replace_api_server_and_scheduler(
    settings: BedSettings, programs: Programs, flags: Sequence[str]
) -> None:
    """Start both anew with more flags; the API server needs a few seconds until it answers."""
    for daemon in (_api_server(settings, programs), _scheduler(settings, programs)):
        processes.stop(daemon, signal.SIGKILL)  # asked, the API server waits for its watchers
        processes.start(dataclasses.replace(daemon, argv=[*daemon.argv, *flags]))


def start_controllers(settings: BedSettings, programs: Programs) -> None:
    """Start what needs an API server that answers."""
    processes.start(_controller_manager(settings, programs))
    processes.start(_scheduler(settings, programs))


def require_running(settings: BedSettings, names: Sequence[str]) -> None:
    """
    Raises:
        BedError: one of the named processes has ended.
    """
    for name in names:
        processes.require_running(_daemon(settings, name, []))


def _forward(settings: BedSettings, descriptor: int) -> Daemon:
    # -P, and the folder in PYTHONPATH: the module is found whatever the working folder is.
    command = [sys.executable, "-P", "-m", "tests.cluster.forward"]
    return Daemon(
        "forward",
        [
            *network.entering(settings.network_namespace(CLOUD)),
            *command,
            *(str(descriptor), CLOUD_ADDRESS, str(API_PORT)),
        ],
        settings.cloud,
        settings.cgroup(CLOUD),
        {"PYTHONPATH": str(_REPOSITORY)},
        [descriptor],
    )


def _etcd(settings: BedSettings, programs: Programs) -> Daemon:
    return _daemon(
        settings,
        "etcd",
        [
            programs["etcd"],
            f"--data-dir={settings.cloud / 'etcd'}",
            f"--listen-client-urls={_ETCD_URL}",
            f"--advertise-client-urls={_ETCD_URL}",
            f"--listen-peer-urls={_ETCD_PEER_URL}",
            f"--initial-advertise-peer-urls={_ETCD_PEER_URL}",
            f"--initial-cluster=default={_ETCD_PEER_URL}",
            "--unsafe-no-fsync",
        ],
    )


def _api_server(settings: BedSettings, programs: Programs) -> Daemon:
    pki = settings.pki
    return _daemon(
        settings,
        "kube-apiserver",
        [
            programs["kube-apiserver"],
            f"--etcd-servers={_ETCD_URL}",
            f"--advertise-address={CLOUD_ADDRESS}",
            f"--secure-port={API_PORT}",
            f"--service-cluster-ip-range={_SERVICE_RANGE}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            # An authority of its own: with the cluster's, any client could claim to be the proxy.
            f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy.key'}",
            f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'kubelet-client.key'}",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",  # node names resolve nowhere
            f"--service-account-issuer={_ISSUER}",
            f"--service-account-key-file={pki / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--audit-policy-file={_audit_policy(settings)}",
            f"--audit-log-path={audit_log(settings)}",
            # Webhooks behind a Service are called at their pods: nobody translates its address.
            "--enable-aggregator-routing=true",
        ],
    )


def _audit_policy(settings: BedSettings) -> Path:
    file = settings.cloud / "audit-policy.json"
    file.write_text(json.dumps(audit.POLICY))
    return file


def _controller_manager(settings: BedSettings, programs: Programs) -> Daemon:
    pki = settings.pki
    return _daemon(
        settings,
        "kube-controller-manager",
        [
            programs["kube-controller-manager"],
            *_identity_flags(settings.cloud / "kube-controller-manager"),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            f"--node-monitor-grace-period={settings.node_monitor_grace_s}s",
        ],
    )


def _scheduler(settings: BedSettings, programs: Programs) -> Daemon:
    return _daemon(
        settings,
        "kube-scheduler",
        [
            programs["kube-scheduler"],
            *_identity_flags(settings.cloud / "kube-scheduler"),
            # It may hear that a claim is free before its own books say so, and hears nothing more.
            "--pod-max-in-unschedulable-pods-duration=5s",
        ],
    )


def _identity_flags(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
    ]


def _daemon(settings: BedSettings, name: str, argv: Sequence[str]) -> Daemon:
    entering = network.entering(settings.network_namespace(CLOUD))
    return Daemon(name, [*entering, *argv], settings.cloud, settings.cgroup(CLOUD))
