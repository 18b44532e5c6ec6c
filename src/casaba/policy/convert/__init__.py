"""Pods in the language of the classic device plugin, in the language of claims.

A pod that asks for `nvidia.com/gpu`, `gpumem`, `gpumem-percentage` or `gpucores` gets one claim,
made from a template that is named by its content, with one request for each card. What comes out
is a plan: the templates that must be there, the patch of the pod, warnings for the person. The
pod is JSON as it came: whatever is wrong in it is a `PodRefused`, or left to the API server.

Sources: HAMi's webhook and scheduler (the meaning of resources and annotations), KEP-4381,
KEP-4816 (firstAvailable), KEP-5075 (shared cards).
"""

from casaba.policy.convert.conversion import (
    Conversion,
    TemplateWanted,
    convert_pod,
    wants_conversion,
)
from casaba.policy.convert.essence import essence
from casaba.policy.convert.facts import Card, ClusterFacts
from casaba.policy.convert.pods import Object
from casaba.policy.convert.refusals import PodRefused
from casaba.policy.convert.updates import strip_update

__all__ = [
    "Card",
    "ClusterFacts",
    "Conversion",
    "Object",
    "PodRefused",
    "TemplateWanted",
    "convert_pod",
    "essence",
    "strip_update",
    "wants_conversion",
]
