"""`casaba webhook`: turns classic pods into pods with claims, and judges claims of our class.

Takes reviews over HTTPS, asks policy.convert and policy.admit, and keeps the templates that its
answers name. May use net/ and kube/; remembers nothing that another replica would need.
"""
