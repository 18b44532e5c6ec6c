"""`casaba doctor`: makes observations of a cluster or of this machine, and has them judged.

Each observation is made for itself and within a time limit: one that fails says so, and the others
go on. Changes nothing: what it creates are dry runs. May use kube, node, net and policy.
"""
