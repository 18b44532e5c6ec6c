"""Where the API server is and how we prove who we are: a kubeconfig, or a pod's service account.

Sources: kubectl's "Organizing Cluster Access Using kubeconfig Files", and "Accessing the
Kubernetes API from a Pod".
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from casaba.kube.errors import KubeConfigError
from casaba.kube.kubeconfig import Entry, Kubeconfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token, CA and namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeConfig:
    """One API server and one identity. Secrets stay out of `repr`."""

    origin: str
    """What to name in messages: the file and context, or the service account."""
    server: str
    """Base URL, http or https, without a slash at its end."""
    namespace: str = "default"
    authority_pem: str | None = None
    """Certificates to trust; None means the system's."""
    insecure: bool = False
    """Accept any server certificate."""
    tls_server_name: str | None = None
    """Name to expect in the server's certificate instead of the URL's host."""
    client_certificate_pem: bytes | None = None
    client_key_pem: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again as it changes; goes before `token`."""


def load_config(
    kubeconfig: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> KubeConfig:
    """The first of: the file given, $KUBECONFIG, the pod's service account, ~/.kube/config.

    Raises KubeConfigError, which names the file, the key and what to do.
    """
    if kubeconfig is not None:
        return _from_file(kubeconfig)
    if named := environ.get("KUBECONFIG"):
        if os.pathsep in named:
            raise KubeConfigError(f"KUBECONFIG names several files ({named}); name one")
        return _from_file(Path(named))
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if home.exists():
        return _from_file(home)
    raise KubeConfigError(
        f"no Kubernetes access: KUBECONFIG is not set, this is no pod, and {home} does not exist; "
        "pass --kubeconfig FILE"
    )


def _from_file(path: Path) -> KubeConfig:
    kubeconfig = Kubeconfig.read(path)
    context = kubeconfig.current_context()
    cluster = kubeconfig.entry("cluster", context.text("cluster", required=True))
    config = _of_cluster(cluster, origin=f"{path} (context {context.name!r})")
    if namespace := context.text("namespace"):
        config = replace(config, namespace=namespace)
    user_name = context.text("user")
    return _with_user(config, kubeconfig.entry("user", user_name)) if user_name else config


def _of_cluster(cluster: Entry, origin: str) -> KubeConfig:
    cluster.refuse_unsupported()
    server = cluster.text("server", required=True)
    if not server.startswith(("https://", "http://")):
        raise cluster.wrong("server", f"is {server!r}; write it as https://HOST:PORT")
    authority = cluster.content("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and authority:
        raise cluster.wrong("insecure-skip-tls-verify", "contradicts certificate-authority")
    return KubeConfig(
        origin=origin,
        server=server.rstrip("/"),
        authority_pem=authority.decode("utf-8", "replace") if authority else None,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name") or None,
    )


def _with_user(config: KubeConfig, user: Entry) -> KubeConfig:
    user.refuse_unsupported()
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if bool(certificate) != bool(key):
        raise user.wrong("client-certificate", "and client-key belong together; one is missing")
    return replace(
        config,
        client_certificate_pem=certificate,
        client_key_pem=key,
        token=user.text("token") or None,
        token_file=user.file("tokenFile"),
    )


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> KubeConfig:
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    for name in ("token", "ca.crt", "namespace"):
        if not os.access(service_account / name, os.R_OK):
            raise KubeConfigError(
                f"{service_account / name} can't be read; does the pod's spec say "
                "automountServiceAccountToken: false?"
            )
    return KubeConfig(
        origin=f"service account in {service_account}",
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=(service_account / "namespace").read_text().strip(),
        authority_pem=(service_account / "ca.crt").read_text(),
        token_file=service_account / "token",
    )
