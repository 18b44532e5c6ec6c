"""The `exec` part of a kubeconfig's user: which program supplies credentials, told what.

Source: Kubernetes' "Authenticating", client-go credential plugins.
"""

import base64
from typing import Any, Literal, cast

from casaba.kube.config import ExecPlugin, KubeConfig
from casaba.kube.kubeconfig import Entry

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
_EXTENSION = "client.authentication.k8s.io/exec"
"""Name of the cluster's extension that is handed to the plugin as `config`."""


def exec_plugin(user: Entry, cluster: Entry, config: KubeConfig) -> ExecPlugin | None:
    """The user's credential plugin, if there is one; raises KubeConfigError."""
    entry = user.inside("exec")
    if entry is None:
        return None
    api_version = entry.text("apiVersion", required=True)
    if api_version not in _VERSIONS:
        raise entry.wrong("apiVersion", f"is {api_version!r}; {' and '.join(_VERSIONS)} work")
    return ExecPlugin(
        api_version=api_version,
        command=_command(entry),
        arguments=entry.texts("args"),
        environment={
            variable.text("name", required=True): variable.text("value")
            for variable in entry.each("env")
        },
        install_hint=entry.text("installHint"),
        interactive_mode=_mode(entry, api_version),
        cluster=_cluster(cluster, config) if entry.flag("provideClusterInfo") else None,
    )


def _command(entry: Entry) -> str:
    """A path with a slash is relative to the kubeconfig's folder, as in kubectl."""
    command = entry.text("command", required=True)
    return str(entry.path.parent / command) if "/" in command else command


def _mode(entry: Entry, api_version: str) -> Literal["Never", "IfAvailable", "Always"]:
    mode = entry.text("interactiveMode", required=not api_version.endswith("/v1beta1"))
    if mode and mode not in _MODES:
        raise entry.wrong("interactiveMode", f"is {mode!r}; it is one of {', '.join(_MODES)}")
    return cast("Literal['Never', 'IfAvailable', 'Always']", mode or "IfAvailable")


def _cluster(cluster: Entry, config: KubeConfig) -> dict[str, Any]:
    told: dict[str, Any] = {"server": config.server, "config": _extension(cluster)}
    if config.tls_server_name:
        told["tls-server-name"] = config.tls_server_name
    if config.insecure:
        told["insecure-skip-tls-verify"] = True
    if config.authority_pem:
        told["certificate-authority-data"] = base64.b64encode(
            config.authority_pem.encode()
        ).decode()
    if config.proxy_url:
        told["proxy-url"] = config.proxy_url
    return told


def _extension(cluster: Entry) -> Any:
    for extension in cluster.each("extensions"):
        if extension.text("name") == _EXTENSION:
            return extension.values.get("extension")
    return None
