"""How the agent is: what people must know of it, in the log, in events of the Node, and on request.

A problem is told when it comes and when it is over, not in between.
"""

import logging

from casaba.kube import About, EventRecorder
from casaba.model.problem import Problem

log = logging.getLogger(__name__)

NOT_REGISTERED = "the kubelet has not registered the driver yet"


class AgentStatus:
    """The problems that there are now, and whether the kubelet knows us."""

    def __init__(self, events: EventRecorder, node: About) -> None:
        self._events = events
        self._node = node
        self._problems: dict[str, Problem] = {}
        self._registration: str | None = NOT_REGISTERED

    @property
    def problems(self) -> tuple[Problem, ...]:
        """In the order in which they came."""
        return tuple(self._problems.values())

    @property
    def is_registered(self) -> bool:
        """Whether the kubelet has registered the driver."""
        return self._registration is None

    def unreadiness(self) -> str | None:
        """Why the agent does not serve its kubelet; None: it does.

        A problem of the cards is none of the agent's: it must not keep an upgrade from going on.
        """
        return self._registration

    def note_registration(self, error: str | None) -> None:
        """The kubelet's word: None, or why it has not registered us."""
        self._registration = error
        if error is None:
            log.info("kubelet.registered")
        else:
            log.error("kubelet.registration_failed", extra={"reason": error})

    def tell(self, about: str, problem: Problem) -> None:
        """There is a problem; the last one about the same takes its place."""
        if self._problems.get(about) == problem:
            return
        self._problems[about] = problem
        log.warning("agent.problem", extra={"problem": problem.reason, "reason": problem.message})
        self._events.record(
            self._node, type="Warning", reason=problem.reason, message=problem.message
        )

    def over(self, about: str, reason: str, message: str) -> None:
        """There is no such problem; told if there was one."""
        if self._problems.pop(about, None) is None:
            return
        log.info("agent.problem_over", extra={"problem": reason, "reason": message})
        self.note(reason, message)

    def note(self, reason: str, message: str) -> None:
        """Something that people may want to know, in an event."""
        self._events.record(self._node, reason=reason, message=message)
