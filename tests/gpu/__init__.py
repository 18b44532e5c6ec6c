"""On a machine with a real card: `python -m tests.gpu`, one bounded script, JSON lines.

Never a condition for passing: what it confirms is measured on virtual cards everywhere else.
`--simulate` runs the same script on a virtual card, to know that the script works.
"""
