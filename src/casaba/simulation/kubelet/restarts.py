"""When a container is started again, and what that makes of its pod. Pure.

Source: Kubernetes documentation, Pod Lifecycle.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class After(Enum):
    """What follows the end of a container."""

    RESTART = "restart"
    DONE = "done"


_POLICY = {
    # policy, succeeded: what follows
    ("Always", True): After.RESTART,
    ("Always", False): After.RESTART,
    ("OnFailure", True): After.DONE,
    ("OnFailure", False): After.RESTART,
    ("Never", True): After.DONE,
    ("Never", False): After.DONE,
}


def after_end(policy: str, exit_code: int) -> After:
    """What follows the end of a container of the pod."""
    return _POLICY[policy, exit_code == 0]


def after_init_end(policy: str, exit_code: int) -> After:
    """The same for an init container, of which a success is always enough."""
    return _POLICY["OnFailure" if policy == "Always" else policy, exit_code == 0]


@dataclass(frozen=True, kw_only=True)
class CrashBackOff:
    """Delays of CrashLoopBackOff, in seconds."""

    first_s: float
    limit_s: float

    def delay_s(self, restarts: int) -> float:
        """The wait before a container that was restarted so often starts again; once at once."""
        if restarts == 0:
            return 0.0
        return min(self.first_s * 2.0 ** min(restarts - 1, 32), self.limit_s)

    def has_recovered(self, ran_s: float) -> bool:
        """Whether a container ran for so long that its restarts are counted anew."""
        return ran_s >= 2 * self.limit_s


def final_phase(exit_codes: Iterable[int]) -> str:
    """The phase of a pod whose containers are all at their end."""
    return "Failed" if any(exit_codes) else "Succeeded"
