"""Whether a device meets the conditions of a class and of a request (CEL)."""

from collections.abc import Mapping

from casaba.policy.allocation.behaviour import Behaviour
from casaba.policy.allocation.outcome import AllocationFailed, ClassMissing
from casaba.policy.allocation.pools import Candidate
from casaba.policy.allocation.requests import Wanted, claim_name
from casaba.policy.cel import CelCompileError, CelRuntimeError, compiled_selector
from casaba.wire.kubernetes import DeviceClass, DeviceSelector, ResourceClaim


class Selectors:
    """The selectors of a cluster's classes; what an expression says of a device is kept."""

    def __init__(self, classes: Mapping[str, DeviceClass], behaviour: Behaviour) -> None:
        self._classes = classes
        self._behaviour = behaviour
        self._answers: dict[tuple[str, str, int], bool] = {}

    def class_of(self, wanted: Wanted) -> DeviceClass:
        """Raises ClassMissing."""
        if wanted.class_name not in self._classes:
            raise ClassMissing(
                f"request {wanted.name}: device class {wanted.class_name} does not exist"
            )
        return self._classes[wanted.class_name]

    def objection(self, wanted: Wanted, claim: ResourceClaim, candidate: Candidate) -> str:
        """Whose selector the device does not meet; empty if it meets all.

        Raises AllocationFailed when an expression does not compile or fails.
        """
        of_class = self.class_of(wanted).spec.selectors
        failed = self._first_unmet(f"class {wanted.class_name}", of_class, candidate)
        if failed is not None:
            return f"class selector does not match: {failed}"
        failed = self._first_unmet(f"claim {claim_name(claim)}", wanted.selectors, candidate)
        return "" if failed is None else f"request selector does not match: {failed}"

    def _first_unmet(
        self, owner: str, selectors: tuple[DeviceSelector, ...], candidate: Candidate
    ) -> str | None:
        for index, selector in enumerate(selectors):
            if selector.cel is None:
                raise AllocationFailed(
                    f"{owner}: selector #{index}: CEL expression empty (unsupported selector type?)"
                )
            expression = selector.cel.expression
            if not self._matches(f"{owner}: selector #{index}", expression, candidate):
                return " ".join(expression.split())
        return None

    def _matches(self, where: str, expression: str, candidate: Candidate) -> bool:
        # The snapshot keeps its devices alive, so that no two of them share an id().
        key = (expression, candidate.id.driver, id(candidate.device))
        if key not in self._answers:
            self._answers[key] = self._evaluated(where, expression, candidate)
        return self._answers[key]

    def _evaluated(self, where: str, expression: str, candidate: Candidate) -> bool:
        try:
            return compiled_selector(expression).matches(candidate.id.driver, candidate.device)
        except CelCompileError as error:
            raise AllocationFailed(f"{where}: CEL compile error: {error}") from error
        except CelRuntimeError as error:
            named = self._behaviour.names_device_in_cel_errors
            device = f" on device {candidate.id}" if named else ""
            raise AllocationFailed(f"{where}: CEL runtime error{device}: {error}") from error
