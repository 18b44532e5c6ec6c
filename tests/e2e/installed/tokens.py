"""Calls on the API server with a token alone, as whoever has stolen it would make them."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.chart.rendering import NAMESPACE
from tests.cluster.bed import Bed

_REQUEST_TIMEOUT_S = 30.0
_PATCH = "application/merge-patch+json"
_JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What the API server said.

    Attributes:
        code: HTTP status.
        said: the message of a refusal; otherwise empty.
        body: the decoded answer.
    """

    code: int
    said: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Holder:
    """Somebody with a token."""

    bed: Bed
    token: str

    def call(self, method: str, path: str, body: Any = None, *, dry_run: bool = True) -> Answer:
        """One request; writes by dry run, so that nothing happens where they are granted."""
        separator = "&" if "?" in path else "?"
        query = f"{separator}dryRun=All" if dry_run and method != "GET" else ""
        kind = _PATCH if method == "PATCH" else _JSON
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": _JSON}
        connection = self._connection()
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path + query, content, headers)
            response = connection.getresponse()
            return _answer(response.status, response.read())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        told = json.loads(self.bed.kubeconfig.read_text())["clusters"][0]["cluster"]
        authority = base64.b64decode(told["certificate-authority-data"]).decode()
        url = urlsplit(told["server"])
        tls = ssl.create_default_context(cadata=authority)
        host, port = str(url.hostname), int(url.port or 443)
        return http.client.HTTPSConnection(host, port, context=tls, timeout=_REQUEST_TIMEOUT_S)


def _answer(code: int, content: bytes) -> Answer:
    try:
        body = json.loads(content)
    except ValueError:
        body = {"message": content.decode(errors="replace")}
    said = str(body.get("message", "")) if code >= 400 else ""
    return Answer(code, " ".join(said.split()), body)


def token_of_pod(bed: Bed, component: str, node: str | None = None) -> Holder:
    """The token that a running pod of the release has, read from the disk of its node."""
    pod = _pod(bed, component, node)
    uid, on = pod["metadata"]["uid"], pod["spec"]["nodeName"]
    volumes = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected"
    command = ["/bin/sh", "-c", f"exec cat {volumes}/kube-api-access-*/token"]
    return Holder(bed, bed.node(on).run_in_namespaces(command).stdout)


def _pod(bed: Bed, component: str, node: str | None) -> dict[str, Any]:
    selector = f"--selector=app.kubernetes.io/component={component}"
    where = [f"--field-selector=spec.nodeName={node}"] if node else []
    said = bed.kubectl("get", "pods", f"-n={NAMESPACE}", selector, *where, "-o=json").stdout
    running = [one for one in json.loads(said)["items"] if one["status"]["phase"] == "Running"]
    return dict(running[0])


def token_of_account(bed: Bed, account: str) -> Holder:
    """A token such as the kubelet would give to a pod of an account."""
    return Holder(bed, bed.kubectl("create", "token", account, f"-n={NAMESPACE}").stdout.strip())
