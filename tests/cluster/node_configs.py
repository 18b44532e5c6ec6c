"""Configuration files of a node's daemons: pure values, no I/O.

The settings beside the plain ones are those that a machine without systemd, with version 1
cgroups and with several kubelets needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.cluster.settings import NodeSettings

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
SIMULATED_DIR = "/run/casaba-simulated"
_CNI_PROGRAMS = "/usr/lib/cni"


def containerd(etc: str, pause_image: str, shim_folder: str) -> str:
    """containerd's config.toml (version 3, for containerd 2.x).

    Args:
        etc: the node's folder of configuration files.
        pause_image: name of the sandbox image, which must be imported.
        shim_folder: folder of `containerd-shim-runc-v2`.
    """
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause_image}"

[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
cdi_spec_dirs = ["/var/run/cdi"]
disable_apparmor = true
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true
netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{_CNI_PROGRAMS}"]
conf_dir = "{etc}/cni"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{shim_folder}/containerd-shim-runc-v2"
base_runtime_spec = "{etc}/runtime-spec.json"
"""


def runtime_spec(default_spec: Mapping[str, Any]) -> str:
    """containerd's default OCI spec plus the virtual cards' state, for every container."""
    mount = {
        "destination": SIMULATED_DIR,
        "type": "bind",
        "source": SIMULATED_DIR,
        "options": ["rbind", "rw"],
    }
    return json.dumps({**default_spec, "mounts": [*default_spec["mounts"], mount]})


def cni(node: NodeSettings) -> str:
    """A bridge of the node's own for its pods; addresses are forgotten at reboot, as pods are."""
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "bed",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": "/run/cni-addresses",
                        "ranges": [[{"subnet": node.pod_subnet}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        }
    )


def kubelet(etc: str) -> str:
    """KubeletConfiguration, as JSON (which is YAML)."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{etc}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{etc}/kubelet-server.crt",
            "tlsPrivateKeyFile": f"{etc}/kubelet-server.key",
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": "/",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            "failSwapOn": False,
            "evictionHard": {
                "memory.available": "0%",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "resolvConf": "",
            "clusterDNS": ["10.96.0.10"],  # nobody is there; without one every pod gets a warning
            "readOnlyPort": 0,
            "healthzPort": 0,
        },
        indent=1,
    )
