"""`casaba run`: a slice for a local process tree, without Kubernetes and without root."""
