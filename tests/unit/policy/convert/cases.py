"""Pods and what becomes of them, as a table: for the pure conversion, and for a real API server.

`claim` has a line for each request (`name: memory/cores`, `where N` counts its selectors), for
each constraint and each configuration. An empty claim without a refusal: the pod gets none.
"""

from tests.unit.policy.convert.amount_cases import (
    AMOUNTS,
    COUNTS,
    DEFAULTS,
    PARAMETERS,
    PERCENTAGES,
)
from tests.unit.policy.convert.init_cases import INIT
from tests.unit.policy.convert.place_cases import CHOICES, CLUSTER, PLACEMENT, PODS

CASES = (
    *AMOUNTS,
    *DEFAULTS,
    *PARAMETERS,
    *COUNTS,
    *INIT,
    *PERCENTAGES,
    *CHOICES,
    *PLACEMENT,
    *CLUSTER,
    *PODS,
)
