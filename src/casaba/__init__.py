"""casaba: shares of a GPU for containers at the edge."""

__version__ = "0.1.0"
