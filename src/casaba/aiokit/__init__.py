"""asyncio without our domain: pieces that any asynchronous program could use.

May use asyncio, time and random; knows nothing of Kubernetes, cards or settings. The only room
that may start loose tasks.
"""

from casaba.aiokit.backoff import Backoff
from casaba.aiokit.guarded import run_guarded, running_beside
from casaba.aiokit.work_queue import QueueClosed, WorkQueue

__all__ = ["Backoff", "QueueClosed", "WorkQueue", "run_guarded", "running_beside"]
