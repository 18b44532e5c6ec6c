"""A small Kubernetes API server in one process: a test double and a demo, never a cluster.

It keeps objects in memory and behaves as the real one where casaba's parts and kubectl can see a
difference; tests/conformance holds it to that. Listens on loopback only.
"""

from casaba.simulation.api_server.faults import (
    ANY,
    CutStream,
    Fault,
    Faults,
    LostAnswer,
    LostEvents,
    Refusal,
    Slowness,
    Target,
    Weather,
)
from casaba.simulation.api_server.server import SimulatedApiServer

__all__ = [
    "ANY",
    "CutStream",
    "Fault",
    "Faults",
    "LostAnswer",
    "LostEvents",
    "Refusal",
    "SimulatedApiServer",
    "Slowness",
    "Target",
    "Weather",
]
