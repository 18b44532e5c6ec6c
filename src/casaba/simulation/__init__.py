"""Stand-ins for what a laptop lacks: a GPU host with virtual cards, and a cluster around it.

`cluster` puts API server, controllers, scheduler and kubelets together; each also works by itself
against its real neighbours. Never offered as the real thing, and says so. May use everything below
the services; only cli and tests use it. Stand-ins are held to the real parts by tests/conformance.
"""
