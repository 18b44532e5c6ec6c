"""Bytes to objects and back: Kubernetes objects, DRA messages, CDI specs, policy file and region.

Pure: no I/O, no clock. May use model, settings and errors.
"""
