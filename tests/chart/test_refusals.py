"""Values that can't be right are refused with words that tell where and what instead."""

from __future__ import annotations

import pytest

from tests.chart.rendering import refused

REFUSED = [
    ("conversion.defaultCores=120", "/conversion/defaultCores", "want 100"),
    ("conversion.memoryFactor=0", "/conversion/memoryFactor", "want 1"),
    (
        'conversion.gpuCorePolicy="never"',
        "/conversion/gpuCorePolicy",
        "'default', 'force', 'disable'",
    ),
    ("webhook.replicas=0", "/webhook/replicas", "want 1"),
    ('webhook.replicas="two"', "/webhook/replicas", "want integer"),
    ('webhook.tlsMinVersion="1.1"', "/webhook/tlsMinVersion", "'1.2', '1.3'"),
    ("webhook.config.timeoutSeconds=31", "/webhook/config/timeoutSeconds", "want 30"),
    ('webhook.config.mutating.failurePolicy="Retry"', "failurePolicy", "'Fail', 'Ignore'"),
    ('webhook.image.tag="latest"', "latest", "name a version"),
    ('drivers.nvidia.image.tag="latest"', "latest", "name a version"),
    ("drivers.nvidia.contanerDriver=false", "/drivers/nvidia", "'contanerDriver' not allowed"),
    ("drivers.nvidia.metricsPort=80", "/drivers/nvidia/metricsPort", "want 1,024"),
    ('drivers.nvidia.contextAllowance="some"', "/contextAllowance", "'some' does not match"),
    ("drivers.nvidia.daemonSet.nodeSelector.gpu=true", "nodeSelector/gpu", "want string"),
    ("drivers.nvidia.daemonSet.nodeSelector.gpu=null", "nodeSelector is empty", "name a label"),
    *(
        (f'drivers.nvidia.kubeletDir="{folder}"', "/drivers/nvidia/kubeletDir", "does not match")
        for folder in ("kubelet", "/var/lib/", "/var/../kubelet", "/", "/a//b", "/a/./b", "/a b")
    ),
    ('monitor.service.type="LoadBalancer"', "/monitor/service/type", "'ClusterIP', 'NodePort'"),
    ("monitor.service.nodePort=70000", "/monitor/service/nodePort", "want 65,535"),
    ('certs.certManager.enabled="maybe"', "/certs/certManager/enabled", "true, false, 'auto'"),
    ('certs.custom.crt="x"', "certs.custom", "crt and key come together"),
    ('resourceName="gpu"', "/resourceName", "'gpu' does not match"),
    ('resourceMem="nvidia.com/gpu"', "are the same", "nvidia.com/gpu"),
    ("networkPolicy.apiServerPorts=[]", "/networkPolicy/apiServerPorts", "want 1"),
    *(
        (f"{part}.pdb.maxUnavailable={amount}", f"/{part}/pdb/maxUnavailable", told)
        for part in ("webhook", "controller")
        for amount, told in (
            ("0", "want 1"),
            ('"0%"', "'0%' does not match"),
            ('"00%"', "'00%' does not match"),
            ('"101%"', "'101%' does not match"),
        )
    ),
    ("uninstall.timeoutSeconds=1", "/uninstall/timeoutSeconds", "want 10"),
]


@pytest.mark.parametrize(("value", "where", "what"), REFUSED, ids=[one[0] for one in REFUSED])
def test_a_value_is_refused(value: str, where: str, what: str) -> None:
    said = refused(value)
    assert where in said
    assert what in said


def test_an_old_kubernetes_is_refused() -> None:
    assert ">=1.34.0-0" in refused(options=["--kube-version=1.33.9"])
