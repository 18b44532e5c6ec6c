"""Decisions: values in, frozen plans out.

Pure: no I/O, no clock, no randomness. What a plan says is carried out by node/ and kube/, in the
order that services/ choose. May use wire, model, settings and errors.
"""
