"""What becomes of pods, worked out once for all that ask for the same."""

import weakref

import msgspec

from casaba.policy.convert import ClusterFacts, Conversion, Object, convert_pod, essence
from casaba.settings.conversion import ConversionSettings

_KEPT = 256
"""So many plans are kept."""
_KEPT_BYTES = 4096
"""Of pods that ask for more than can be said in so many bytes none is kept."""


class Plans:
    """A controller makes many pods of one template, above all when reviews are many.

    A plan holds for the facts that it was made with. Threads may share these.
    """

    def __init__(self, settings: ConversionSettings) -> None:
        self._settings = settings
        self._made: dict[tuple[int, bytes], tuple[weakref.ref[ClusterFacts], Conversion]] = {}

    def plan(self, pod: Object, facts: ClusterFacts) -> Conversion:
        """As `convert_pod`; nobody may change what it returns."""
        asked = essence(pod)
        key = (id(facts), msgspec.json.encode(asked))
        made_with, plan = self._made.get(key, (None, None))
        if made_with is None or plan is None or made_with() is not facts:
            plan = convert_pod(asked, facts, self._settings)
            self._keep(key, facts, plan)
        return plan

    def _keep(self, key: tuple[int, bytes], facts: ClusterFacts, plan: Conversion) -> None:
        if len(self._made) >= _KEPT:
            self._made.clear()
        if len(key[1]) <= _KEPT_BYTES:
            self._made[key] = weakref.ref(facts), plan
