"""A scheduler that decides and speaks as kube-scheduler 1.36 does, for any API server.

    state ──view──► decision ──► binding      pure in the middle: `queue`, `decision`, `filters`,
      ▲  ▲                         │          `claims`, `resources`, `node_selection`, `messages`
    queue └────── in flight ◄──────┘

A test double: no preemption, no spreading by scores, no gangs.
"""

from casaba.simulation.scheduler.scheduler import SchedulerSettings, SimulatedScheduler

__all__ = ["SchedulerSettings", "SimulatedScheduler"]
