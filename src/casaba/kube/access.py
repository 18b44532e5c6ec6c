"""Finds our access to an API server: a kubeconfig, or a pod's service account.

Sources: kubectl's "Organizing Cluster Access Using kubeconfig Files", and "Accessing the
Kubernetes API from a Pod".
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from casaba.kube.config import Impersonation, KubeConfig
from casaba.kube.errors import KubeConfigError
from casaba.kube.exec_entry import exec_plugin
from casaba.kube.kubeconfig import Entry, Kubeconfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token, CA and namespace."""


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
        return _from_files([kubeconfig])
    if named := [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return _from_files(named)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if home.exists():
        return _from_files([home])
    raise KubeConfigError(
        f"no Kubernetes access: KUBECONFIG is not set, this is no pod, and {home} does not exist; "
        "pass --kubeconfig FILE"
    )


def _from_files(paths: list[Path]) -> KubeConfig:
    kubeconfig = Kubeconfig.read(paths)
    context = kubeconfig.current_context()
    cluster = kubeconfig.entry("cluster", context.text("cluster", required=True))
    config = _of_cluster(cluster, origin=f"{context.path} (context {context.name!r})")
    if namespace := context.text("namespace"):
        config = replace(config, namespace=namespace)
    if user_name := context.text("user"):
        return _with_user(config, kubeconfig.entry("user", user_name), cluster)
    return config


def _of_cluster(cluster: Entry, origin: str) -> KubeConfig:
    server = cluster.text("server", required=True)
    if not _is_url(server):
        raise cluster.wrong("server", f"is {server!r}; write it as https://HOST:PORT")
    authority, authority_file = cluster.content("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and authority:
        raise cluster.wrong("insecure-skip-tls-verify", "contradicts certificate-authority")
    return KubeConfig(
        origin=origin,
        server=server.rstrip("/"),
        authority_pem=authority.decode("utf-8", "replace") if authority else None,
        authority_file=authority_file,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy_url=_proxy(cluster),
    )


def _proxy(cluster: Entry) -> str | None:
    url = cluster.text("proxy-url")
    scheme = url.partition("://")[0]
    if url and scheme not in ("http", "https"):
        raise cluster.wrong("proxy-url", f"is of kind {scheme!r}; there are http and https proxies")
    if url and not _is_url(url):  # it may hold a password, so it is not shown
        raise cluster.wrong("proxy-url", "is no URL; write it as http://HOST:PORT")
    return url or None


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _with_user(config: KubeConfig, user: Entry, cluster: Entry) -> KubeConfig:
    user.refuse_unsupported()
    certificate, certificate_file = user.content("client-certificate")
    key, key_file = user.content("client-key")
    if bool(certificate) != bool(key):
        raise user.wrong("client-certificate", "and client-key belong together; one is missing")
    return replace(
        config,
        client_certificate_pem=certificate,
        client_key_pem=key,
        client_certificate_file=certificate_file,
        client_key_file=key_file,
        token=user.text("token") or None,
        token_file=user.file("tokenFile"),
        exec_plugin=exec_plugin(user, cluster, config),
        impersonate=_impersonation(user),
    )


def _impersonation(user: Entry) -> Impersonation | None:
    asked = Impersonation(
        user=user.text("as"),
        uid=user.text("as-uid"),
        groups=user.texts("as-groups"),
        extra=user.lists_of_texts("as-user-extra"),
    )
    if not asked.user and (asked.uid or asked.groups or asked.extra):
        raise user.wrong("as", "is missing beside as-uid, as-groups or as-user-extra")
    return asked if asked.user else None


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
        authority_file=service_account / "ca.crt",
        token_file=service_account / "token",
    )
