"""The controller: unused templates, the webhook's certificates, and what is allocated.

Orders the steps that `policy` plans; talks to the API server through `kube`, serves its metrics
through `net`. Only the leader of its replicas writes and tells what is allocated.
"""
