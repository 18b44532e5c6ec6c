"""A small Kubernetes API server in one process: a test double and a demo, never a cluster.

It keeps objects in memory and behaves as the real one where casaba's parts and kubectl can see a
difference; tests/conformance holds it to that. Listens on loopback only.
"""
