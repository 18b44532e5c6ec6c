"""How people and programs get in: configurations with a client certificate in them."""

from base64 import b64encode
from collections.abc import Sequence

from casaba.kube import KubeConfig
from casaba.simulation.api_server.requests import Object
from casaba.simulation.authority import ClusterAuthority

ADMIN = "kubernetes-admin"
ADMIN_GROUPS = ("system:masters",)
CLUSTER_NAME = "casaba-simulated"


def client_config(
    authority: ClusterAuthority, url: str, username: str, groups: Sequence[str]
) -> KubeConfig:
    """Access of a user for casaba's own client."""
    certificate, key = authority.client_certificate(username, groups)
    return KubeConfig(
        origin="the simulated cluster",
        server=url,
        authority_pem=authority.authority_pem,
        client_certificate_pem=certificate,
        client_key_pem=key,
    )


def kubeconfig_document(
    authority: ClusterAuthority, url: str, username: str, groups: Sequence[str]
) -> Object:
    """Access of a user for kubectl: what to write into its file."""
    certificate, key = authority.client_certificate(username, groups)
    trusted = _base64(authority.authority_pem.encode())
    cluster = {"server": url, "certificate-authority-data": trusted}
    user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
        "users": [{"name": username, "user": user}],
        "contexts": [
            {"name": CLUSTER_NAME, "context": {"cluster": CLUSTER_NAME, "user": username}}
        ],
        "current-context": CLUSTER_NAME,
    }


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
