"""The nouns of casaba: frozen dataclasses, ids as NewType, quantity and version numbers.

Pure: no I/O, no clock, no randomness, nothing of Kubernetes' wire form.
"""
