"""Measurements, never part of a timed test: `python -m tests.bench [NAME…]`."""
