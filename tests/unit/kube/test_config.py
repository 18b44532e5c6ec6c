"""Where access comes from, and what every wrong kubeconfig says about itself."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from casaba.errors import InvalidInput
from casaba.kube import (
    Impersonation,
    KubeConfig,
    KubeConfigError,
    KubeError,
    load_config,
)

PEM = b"-----BEGIN CERTIFICATE-----\n"
PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "aws",
    "interactiveMode": "Never",
}


def document(
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
) -> dict[str, Any]:
    default = {"cluster": "k", "user": "u", "namespace": "n"}
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": default if context is None else context}],
        "clusters": [{"name": "k", "cluster": {"server": "https://h:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    }


def loaded(folder: Path, content: dict[str, Any]) -> KubeConfig:
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return load_config(path)


def test_a_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(PEM)
    (tmp_path / "token").write_text("t")
    config = loaded(
        tmp_path,
        document(
            {"certificate-authority": "ca.pem", "tls-server-name": "kubernetes"},
            {
                "client-certificate-data": base64.b64encode(b"crt").decode(),
                "client-key-data": base64.b64encode(b"key").decode(),
                "token": "secret",
                "tokenFile": "token",
            },
        ),
    )
    assert config == KubeConfig(
        origin=f"{tmp_path / 'config'} (context 'c')",
        server="https://h:6443",
        namespace="n",
        authority_pem=PEM.decode(),
        authority_file=tmp_path / "ca.pem",
        tls_server_name="kubernetes",
        client_certificate_pem=b"crt",
        client_key_pem=b"key",
        token="secret",
        token_file=tmp_path / "token",
    )
    assert "secret" not in repr(config)
    assert "b'key'" not in repr(config)


def test_data_goes_before_a_file(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority": "/does/not/exist",
        "certificate-authority-data": base64.b64encode(PEM).decode(),
    }
    assert loaded(tmp_path, document(cluster)).authority_pem == PEM.decode()


def test_a_context_without_user_is_anonymous(tmp_path: Path) -> None:
    config = loaded(tmp_path, document(context={"cluster": "k"}))
    assert (config.token, config.client_key_pem, config.namespace) == (None, None, "default")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "current-context is not set; choose one with kubectl config use-context"),
        (document() | {"current-context": "x"}, "no context 'x'; there are: 'c'"),
        (document() | {"clusters": None}, "no cluster 'k'; there are: none"),
        (document() | {"clusters": {}}, "no cluster 'k'"),
        (document() | {"clusters": {"k": 1}}, "clusters must be a list of mappings"),
        (document() | {"users": ["u"]}, "users must be a list of mappings"),
        (document(context={}), "context 'c': cluster is missing"),
        (document({"server": None}), "cluster 'k': server is missing"),
        (document({"server": 5}), "cluster 'k': server must be a text, not int"),
        (document({"server": "h:6443"}), "server is 'h:6443'; write it as https://HOST:PORT"),
        (document({"server": "https://h:6x"}), "server is 'https://h:6x'; write it as https://"),
        (document({"server": "https://:6443"}), "server is 'https://:6443'; write it as https://"),
        (document({"proxy-url": "http://u:secret@p:x"}), "proxy-url is no URL; write it as http:"),
        (
            document({"certificate-authority": "gone"}),
            "certificate-authority names .*gone: No such",
        ),
        (document({"certificate-authority-data": "?"}), "certificate-authority-data is not base64"),
        (document({"insecure-skip-tls-verify": "yes"}), "tls-verify must be true or false"),
        (
            document({"insecure-skip-tls-verify": True, "certificate-authority-data": "AAAA"}),
            "insecure-skip-tls-verify contradicts certificate-authority",
        ),
        (document({"proxy-url": "socks5://p"}), "proxy-url is of kind 'socks5'; there are http"),
        (document(user={"username": "me"}), "user 'u': username was removed"),
        (document(user={"as-groups": ["g"]}), "user 'u': as is missing beside as-uid, as-groups"),
        (document(user={"as": "a", "as-groups": "g"}), "as-groups must be a list of texts"),
        (document(user={"exec": ["aws"]}), "user 'u': exec must be a mapping, not list"),
        (document(user={"exec": {"command": "aws"}}), "user 'u': exec.apiVersion is missing"),
        (
            document(user={"exec": PLUGIN | {"apiVersion": f"{PLUGIN['apiVersion']}alpha1"}}),
            "exec.apiVersion is '.*v1alpha1'; client.authentication.k8s.io/v1 and .*v1beta1 work",
        ),
        (document(user={"exec": PLUGIN | {"command": ""}}), "exec.command is missing"),
        (document(user={"exec": PLUGIN | {"args": "a"}}), "exec.args must be a list of texts"),
        (
            document(user={"exec": PLUGIN | {"env": [{"name": "A"}, {"value": "B"}]}}),
            r"exec.env\[1\].name is missing",
        ),
        (
            document(user={"exec": PLUGIN | {"interactiveMode": "Maybe"}}),
            "exec.interactiveMode is 'Maybe'; it is one of Never, IfAvailable, Always",
        ),
        (
            document(user={"exec": {**PLUGIN, "interactiveMode": None}}),
            "exec.interactiveMode is missing",
        ),
        (document(user={"tokenFile": "gone"}), "user 'u': tokenFile names .*gone: No such file"),
        (
            document(user={"client-certificate-data": "AAAA"}),
            "user 'u': client-certificate and client-key belong together",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    with pytest.raises(KubeConfigError, match=message) as caught:
        loaded(tmp_path, content)
    assert str(tmp_path / "config") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"not YAML at line \d: "),
        ("- a\n- b", "holds no mapping"),
        ("", "holds no mapping"),
        ("a: \x00", "not YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubeConfigError, match=f"config: {message}"):
        load_config(tmp_path / "config")


def test_a_file_that_is_binary(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\x80\x81\x82")
    with pytest.raises(KubeConfigError, match="config: not YAML"):
        load_config(tmp_path / "config")


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigError, match=r"nope: No such file .* with --kubeconfig"):
        load_config(tmp_path / "nope")
    with pytest.raises(KubeConfigError, match="Is a directory"):
        load_config(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch(mode=0)
    with pytest.raises(KubeConfigError, match="config: Permission denied"):
        load_config(path)


def test_the_error_is_both_bad_input_and_of_kubernetes() -> None:
    error = KubeConfigError("x")
    assert isinstance(error, InvalidInput)
    assert isinstance(error, KubeError)
    assert error.exit_code == 2


def service_account(folder: Path) -> Path:
    (folder / "token").write_text("t")
    (folder / "ca.crt").write_bytes(PEM)
    (folder / "namespace").write_text("casaba\n")
    return folder


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")],
)
def test_a_service_account(tmp_path: Path, host: str, server: str) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
    config = load_config(environ=environ, service_account=service_account(tmp_path))
    assert (config.server, config.namespace) == (server, "casaba")
    assert config.token_file == tmp_path / "token"
    assert config.authority_pem == PEM.decode()


def test_a_service_account_that_is_not_mounted(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "h"}
    with pytest.raises(
        KubeConfigError, match=r"token can't be read; .*automountServiceAccountToken"
    ):
        load_config(environ=environ, service_account=tmp_path)


def test_which_access_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / "account").mkdir()
    account = service_account(tmp_path / "account")
    homely = tmp_path / ".kube" / "config"
    named = tmp_path / "named"
    for path in (homely, named):
        path.write_text(yaml.safe_dump(document()))
    environ = {"HOME": str(tmp_path)}

    def origin() -> str:
        return load_config(environ=environ, service_account=account).origin

    assert origin().startswith(str(homely))
    environ["KUBERNETES_SERVICE_HOST"] = "h"
    assert origin() == f"service account in {account}"
    environ["KUBECONFIG"] = str(named)
    assert origin().startswith(str(named))


def test_of_several_files_the_first_that_names_something_counts(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "ca.pem").write_bytes(PEM + folder.name.encode())
    one = document({"certificate-authority": "ca.pem"}) | {"users": []}
    two = document({"server": "https://other", "certificate-authority": "ca.pem"})
    two["users"][0]["user"] = {"token": "of two"}
    two |= {"current-context": "not this"}
    for folder, content in zip(folders, (one, two), strict=True):
        (folder / "config").write_text(yaml.safe_dump(content))
    files = [tmp_path / "absent", *(folder / "config" for folder in folders)]
    config = load_config(environ={"KUBECONFIG": f":{':'.join(map(str, files))}"})
    assert config.server == "https://h:6443"
    assert config.authority_pem == f"{PEM.decode()}one"
    assert config.token == "of two"
    assert config.origin == f"{files[1]} (context 'c')"


def test_of_several_files_that_lack_something_all_are_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(yaml.safe_dump(document() | {"users": []}))
    with pytest.raises(KubeConfigError, match=r"one, .*two: no user 'u'; there are: none"):
        load_config(environ={"KUBECONFIG": f"{tmp_path / 'one'}:{tmp_path / 'two'}"})
    with pytest.raises(KubeConfigError, match="absent: No such file"):
        load_config(environ={"KUBECONFIG": f"{tmp_path / 'absent'}:{tmp_path / 'also'}"})


def test_as_whom_and_through_which_proxy(tmp_path: Path) -> None:
    user = {"as": "me", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}}
    config = loaded(tmp_path, document({"proxy-url": "http://u:secret@p:3128"}, user))
    assert config.impersonate == Impersonation(
        user="me", uid="1", groups=("g",), extra={"k": ("v",)}
    )
    assert config.proxy_url == "http://u:secret@p:3128"
    assert "secret" not in repr(config)


def test_a_credential_plugin_and_what_it_is_told_of_the_cluster(tmp_path: Path) -> None:
    name = "client.authentication.k8s.io/exec"
    cluster = {
        "certificate-authority-data": base64.b64encode(PEM).decode(),
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "other"}, {"name": name, "extension": {"audience": "a"}}],
    }
    entry = PLUGIN | {
        "command": "bin/login",
        "args": ["--quiet"],
        "env": [{"name": "A", "value": "secret"}],
        "installHint": "get it there",
        "provideClusterInfo": True,
    }
    plugin = loaded(tmp_path, document(cluster, {"exec": entry})).exec_plugin
    assert plugin is not None
    assert plugin.command == str(tmp_path / "bin/login")
    assert (plugin.arguments, plugin.environment) == (("--quiet",), {"A": "secret"})
    assert plugin.cluster == {
        "server": "https://h:6443",
        "tls-server-name": "kubernetes",
        "certificate-authority-data": base64.b64encode(PEM).decode(),
        "config": {"audience": "a"},
    }
    assert "secret" not in repr(plugin)
    old = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws"}
    by_default = loaded(tmp_path, document(user={"exec": old})).exec_plugin
    assert by_default is not None
    assert (by_default.interactive_mode, by_default.command) == ("IfAvailable", "aws")
    assert by_default.cluster is None


def test_no_access_at_all_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(
        KubeConfigError, match=r"KUBECONFIG is not set, this is no pod, and .*config"
    ):
        load_config(environ={"HOME": str(tmp_path)})
