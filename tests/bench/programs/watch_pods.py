"""Follows the pods of a server and prints how many changes it took a second.

`python -m tests.bench.programs.watch_pods URL EVENTS`: from the first change to the last.
"""

import asyncio
import sys
import time

from casaba.kube import PODS, Informer, KubeClient, KubeConfig, Synced


async def main(url: str, events: int) -> None:
    """Take so many changes after the list."""
    async with KubeClient(KubeConfig(origin="bench", server=url)) as client:
        async with Informer(client, PODS) as pods:
            async for event in pods:
                if isinstance(event, Synced):
                    break
            await anext(pods)
            started = time.perf_counter()
            for _ in range(events - 1):
                await anext(pods)
            print((events - 1) / (time.perf_counter() - started))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
