"""Every namespace has a ServiceAccount named default (serviceaccount-controller)."""

from typing import Any

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import SERVICE_ACCOUNTS, AlreadyExists, Deleted, KubeClient, NotFound, ObjectKey
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.writing import OVERTAKEN

DEFAULT = "default"

Object = dict[str, Any]


class DefaultServiceAccounts:
    """Makes those that are missing."""

    def __init__(
        self, client: KubeClient, *, namespaces: Source[Object], accounts: Source[Object]
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._accounts = accounts
        self._queue: WorkQueue[str] = WorkQueue(overtaken=OVERTAKEN)
        namespaces.listen(self._note_namespace)
        accounts.listen(self._note_account)

    async def run(self) -> None:
        """Work for ever."""
        await self._accounts.synced.wait()
        await self._queue.serve(self._look_at)

    def _note_namespace(self, change: Change[Object]) -> None:
        self._queue.add(change.key.name)

    def _note_account(self, change: Change[Object]) -> None:
        if isinstance(change, Deleted):
            self._queue.add(change.key.namespace)

    async def _look_at(self, name: str) -> None:
        namespace = self._namespaces.objects.get(ObjectKey("", name))
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        if ObjectKey(name, DEFAULT) in self._accounts.objects:
            return
        try:
            await self._client.create(
                SERVICE_ACCOUNTS, {"metadata": {"name": DEFAULT}}, namespace=name
            )
        except (AlreadyExists, NotFound):
            return
