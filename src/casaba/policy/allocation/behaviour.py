"""In what the allocators of Kubernetes releases differ.

Read in k8s.io/dynamic-resource-allocation v0.34 to v0.37. What is not here is taken to be as in
1.36.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Switches for one release with its default feature gates."""

    consumable_capacity: bool = True
    """Devices may be shared, and have their capacity counted."""
    sorted_order: bool = True
    """Pools and slices are tried by name; before 1.36 in no order, here as they come."""
    repeats_shared_device: bool = False
    """One request may get the same shared device twice."""
    allocates_from_incomplete_pools: bool = False
    fails_on_invalid_pools: bool = False
    """An invalid pool fails the attempt instead of being passed over."""
    distinct_is_ignored: bool = False
    """`distinctAttribute` never finds two values equal."""
    names_device_in_cel_errors: bool = False
    clears_requests_of_general_config: bool = False
    """A class's configuration that is for all requests names none of them."""


KUBERNETES_1_36 = Behaviour()
KUBERNETES_1_37 = replace(
    KUBERNETES_1_36, names_device_in_cel_errors=True, clears_requests_of_general_config=True
)
KUBERNETES_1_35 = replace(
    KUBERNETES_1_36, consumable_capacity=False, sorted_order=False, repeats_shared_device=True
)
KUBERNETES_1_34 = replace(
    KUBERNETES_1_35,
    allocates_from_incomplete_pools=True,
    fails_on_invalid_pools=True,
    distinct_is_ignored=True,
)
