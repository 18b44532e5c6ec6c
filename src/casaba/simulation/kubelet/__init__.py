"""A kubelet small enough to run in a test: real sockets and processes, no containers' runtime.

It speaks registration, DRA and health gRPC as the kubelets of 1.34 to 1.37, keeps a checkpoint,
applies CDI edits, runs containers as processes of this machine and serves their logs. A test
double and a demo, never a way to run workloads; tests/conformance holds it to the real one.
"""

from casaba.simulation.kubelet.kubelet import SimulatedKubelet

__all__ = ["SimulatedKubelet"]
