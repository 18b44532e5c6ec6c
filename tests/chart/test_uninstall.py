"""With the rights of its job, the uninstall finds and removes what it should."""

from __future__ import annotations

import json
from pathlib import Path

from casaba.cli import uninstall as cli
from casaba.policy.collection import MADE_BY, WEBHOOK
from casaba.services.uninstall.leftovers import delete_leftovers
from casaba.services.uninstall.nodes import read_cleaner
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.uninstall import UninstallSettings
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.chart.rendering import NAMESPACE, Object, rendered

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
RESOURCE = "resource.k8s.io/v1"
PLURALS = ("resourceclaimtemplates", "resourceslices", "leases", "secrets")


def settings_of(name: str, *more: str) -> UninstallSettings:
    """As the chart starts that job."""
    spec = rendered().one("Job", name)["spec"]["template"]["spec"]
    words = [*spec["containers"][0]["args"][1:], f"--namespace={NAMESPACE}", *more]
    return cli.settings_from(cli._parser().parse_args(words))


def leftovers() -> list[Object]:
    named = {"namespace": NAMESPACE}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    return [
        {
            "apiVersion": RESOURCE,
            "kind": "ResourceClaimTemplate",
            "metadata": {
                "name": "casaba-0123456789abcdef",
                "namespace": "default",
                "labels": {MADE_BY: WEBHOOK},
            },
            "spec": {"spec": {"devices": {"requests": []}}},
        },
        {
            "apiVersion": RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"name": "n-1"},
            "spec": {"driver": DRIVER_NAME, "nodeName": "n", "pool": pool, "devices": []},
        },
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "casaba-controller", **named},
            "spec": {},
        },
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **named}}
            for name in (
                "hami-dra-webhook-tls",
                "hami-dra-webhook-ca",
                "hami-dra-webhook-cert-manager-ca",
                "hami-dra-webhook-custom-tls",
            )
        ),
    ]


async def test_the_leftovers_may_be_deleted(tmp_path: Path) -> None:
    job = rendered().one("Job", "hami-dra-uninstall-leftovers")
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
    path = tmp_path / "kubeconfig"
    async with SimulatedApiServer() as server:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        server.seed([namespace, *rendered().of(*RIGHTS)])
        before = [server.objects(plural) for plural in PLURALS]
        server.seed(leftovers())
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        path.write_text(json.dumps(server.kubeconfig(user, groups)))
        await delete_leftovers(settings_of(job["metadata"]["name"], f"--kubeconfig={path}"), print)
        assert [server.objects(plural) for plural in PLURALS] == before


def test_the_cleaner_is_what_the_job_reads(tmp_path: Path) -> None:
    (config,) = (o for o in rendered().of("ConfigMap") if "cleaner.json" in o["data"])
    path = tmp_path / "cleaner.json"
    path.write_text(config["data"]["cleaner.json"])
    settings = settings_of("hami-dra-uninstall", f"--cleaner={path}")
    cleaner = read_cleaner(settings)
    assert cleaner["metadata"]["name"] == "hami-dra-node-cleaner"
    assert cleaner["metadata"]["namespace"] == NAMESPACE


def test_the_job_may_what_its_steps_need() -> None:
    """Of the DaemonSets and pods, which the simulated server does not have."""
    role = rendered().one("Role", "hami-dra-uninstall")
    agent = settings_of("hami-dra-uninstall").agent
    given = {
        (resource, verb, name)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("*",))
    }
    for name in (agent, "hami-dra-node-cleaner"):
        assert {("daemonsets", "get", name), ("daemonsets", "delete", name)} <= given
    assert {("daemonsets", "create", "*"), ("pods", "list", "*")} <= given
    cluster = rendered().one("ClusterRole", "hami-dra-uninstall")
    assert any(
        rule["resources"] == ["nodes"] and rule["verbs"] == ["list"] for rule in cluster["rules"]
    )


def test_the_cleaner_tells_why_it_failed() -> None:
    (cleaner,) = rendered().cleaners()
    (clean,) = cleaner["spec"]["template"]["spec"]["initContainers"]
    assert clean["terminationMessagePolicy"] == "FallbackToLogsOnError"
