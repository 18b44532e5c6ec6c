"""Classic pods and workloads that are held back from the scheduler, by kubectl and as they are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.cluster.waiting import wait_until
from tests.e2e.webhook_site import WebhookSite
from tests.unit.policy.convert.pods import PLAIN, gpu, pod

Object = dict[str, Any]

WITHIN_S = 60.0
HELD: Object = {"schedulingGates": [{"name": "casaba.dev/held"}]}
HALF = gpu(1, mem=10240, cores=50)
DENIED = {"denied": "yes"}
"""Label of pods that `policy` does not want."""


def held_pod(name: str, container: Object = HALF, **fields: Any) -> Object:
    """A pod that waits for ever."""
    made = pod(main=container, **fields)
    made["spec"] |= HELD
    made["metadata"]["name"] = name
    return made


def workload(kind: str, name: str, container: Object = HALF, **spec: Any) -> Object:
    """A Deployment or its like, whose pods are held back."""
    template = pod(labels={"app": name}, main=container)
    template["spec"] |= HELD
    del template["metadata"]["name"], template["apiVersion"], template["kind"]
    selector: Object = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template, **spec},
    }


def kubectl(
    site: WebhookSite, *arguments: str, content: Object | None = None
) -> subprocess.CompletedProcess[str]:
    """In the pods' namespace; fails or not."""
    stdin = None if content is None else json.dumps(content)
    return site.bed.kubectl(
        f"--namespace={site.pods_namespace}", *arguments, stdin=stdin, check=False
    )


def applied(site: WebhookSite, content: Object, *flags: str) -> str:
    """What `kubectl apply` says."""
    done = kubectl(site, "apply", "-f", "-", *flags, content=content)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stored_pod(site: WebhookSite, name: str) -> Object:
    """A pod as it is; empty if there is none."""
    reply = site.api.call("GET", site.pods(name))
    return reply.body if reply.status == 200 else {}


def pods_of(site: WebhookSite, app: str) -> list[Object]:
    """The pods of a workload that are not going."""
    found = site.api.call("GET", f"{site.pods()}?labelSelector=app={app}").body["items"]
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def uids(pods: Sequence[Object]) -> set[str]:
    """Tell pods from others of the same names."""
    return {one["metadata"]["uid"] for one in pods}


def template_of(one: Object) -> str:
    """The template of its only claim."""
    (claim,) = one["spec"]["resourceClaims"]
    return str(claim["resourceClaimTemplateName"])


@contextmanager
def policy(site: WebhookSite) -> Iterator[None]:
    """Somebody's admission policy, which the API server asks after all webhooks that change."""
    denied = "object.metadata.?labels['denied'].orValue('no') == 'no'"
    group, named = "admissionregistration.k8s.io/v1", {"name": "webhook-pods-test"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {
            "resourceRules": [rule | {"resources": ["pods"]}],
            "namespaceSelector": {
                "matchLabels": {"kubernetes.io/metadata.name": site.pods_namespace}
            },
        },
        "validations": [{"expression": denied, "message": "nobody wants it"}],
    }
    binding = {"policyName": named["name"], "validationActions": ["Deny"]}
    items = [
        {"apiVersion": group, "kind": f"ValidatingAdmissionPolicy{kind}", "metadata": named} | it
        for kind, it in (("", {"spec": spec}), ("Binding", {"spec": binding}))
    ]
    objects = {"apiVersion": "v1", "kind": "List", "items": items}
    kubectl(site, "apply", "-f", "-", content=objects)
    try:
        unwanted = held_pod("unwanted", PLAIN, labels=DENIED)
        site.wait_until_asked(unwanted, lambda it: it.status == 422)
        yield
    finally:
        kubectl(site, "delete", "-f", "-", "--ignore-not-found", content=objects)


@contextmanager
def quota(site: WebhookSite, **hard: str) -> Iterator[None]:
    """A quota that counts."""
    path = f"/api/v1/namespaces/{site.pods_namespace}/resourcequotas"
    limits = {name.replace("_", "/"): it for name, it in hard.items()}
    made = site.api.call("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": limits}})
    assert made.status == 201, made
    try:
        wait_until(
            "the quota counts",
            lambda: "hard" in site.api.call("GET", f"{path}/q").body.get("status", {}),
            WITHIN_S,
        )
        yield
    finally:
        site.api.call("DELETE", f"{path}/q")
