"""What is wrong with a cluster or a node, and what to do: observations in, findings out. Pure.

A table of checks, each a small function over one observation: `cluster` has those of a cluster,
`host` those of a machine. They are imported apart, since no image has the libraries of both. May
use conflicts, slices and cel.
"""

from casaba.policy.diagnosis.finding import Finding, State, Unanswered, Unseen, exit_code

__all__ = ["Finding", "State", "Unanswered", "Unseen", "exit_code"]
