"""Controllers as kube-controller-manager 1.36 has them, for any API server: a test double.

Each is a pure decision and a loop on shared watches: claims (`claim_making`, `claim_release`),
owners (`ownership`), nodes (`node_health`), evictions, pods without a node, namespaces, default
ServiceAccounts. Times come from clocks in the settings.
"""

from casaba.simulation.controllers.controllers import ControllerSettings, SimulatedControllers

__all__ = ["ControllerSettings", "SimulatedControllers"]
