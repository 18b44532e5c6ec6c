"""Stand-ins for what a laptop lacks: here a GPU host with virtual cards.

Never offered as the real thing, and says so. May use everything below the services; only cli and
tests use it. Stand-ins are held to the real parts by tests/conformance.
"""
