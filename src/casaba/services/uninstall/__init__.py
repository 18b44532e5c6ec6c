"""`casaba uninstall` and `casaba node-clean`: take casaba away from a cluster and from a node.

Every step can be done again: what is gone already is fine. May use kube, node and policy.
"""
