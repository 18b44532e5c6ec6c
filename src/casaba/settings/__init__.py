"""Values that somebody may want to change: groups of them, a docstring with unit under each field.

Imports nothing of ours but errors; no parsing, no environment, no files.
"""
