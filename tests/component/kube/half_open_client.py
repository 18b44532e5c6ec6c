"""Follows a server and prints one line when it is in contact and one when contact is lost."""

import asyncio
import sys

from casaba.kube import NODES, Informer, KubeClient, KubeConfig
from casaba.wire.kubernetes import Node


async def follow(url: str) -> None:
    async with KubeClient(KubeConfig(origin="test", server=url)) as client:
        async with Informer(client, NODES) as nodes, asyncio.TaskGroup() as group:
            group.create_task(watch_failure(nodes))
            async for event in nodes:
                print(type(event).__name__, flush=True)


async def watch_failure(nodes: Informer[Node]) -> None:
    while nodes.failure is None:  # noqa: ASYNC110 - no event tells this
        await asyncio.sleep(0.05)
    print("lost:", nodes.failure, flush=True)


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1]))
