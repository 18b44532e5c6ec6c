"""Changes of the cluster that can make a pod schedulable."""

import enum


class News(enum.Enum):
    """What happened, as far as waiting pods care (the real scheduler's queueing hints)."""

    NODE = enum.auto()
    """A node came, or changed its labels, taints or room."""
    POD_GONE = enum.auto()
    """A pod on a node ended and left its room."""
    POD_CHANGED = enum.auto()
    """The waiting pod itself changed, such as by the name of its claim."""
    CLAIM = enum.auto()
    """A claim that the pod uses came, or its status changed."""
    CLAIM_FREED = enum.auto()
    """Any claim lost its allocation. Of a claim that is deleted while allocated nobody is told."""
    CLASS = enum.auto()
    """A device class came or changed."""
    SLICE = enum.auto()
    """A resource slice came or changed."""


OF_DEVICES = frozenset(
    {News.NODE, News.POD_CHANGED, News.CLAIM, News.CLAIM_FREED, News.CLASS, News.SLICE}
)
"""What a pod that got no devices waits for."""

OF_CLAIMS = frozenset({News.POD_CHANGED, News.CLAIM})
"""What a pod waits for whose claims are not there yet."""
