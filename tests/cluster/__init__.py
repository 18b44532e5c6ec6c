"""A real Kubernetes on one machine: the cloud and each edge node in namespaces of their own.

`python -m tests.cluster up` starts it, `down` leaves nothing of it. Tests use `Bed` (bed.py).
"""
