"""Follows ConfigMaps with a label and prints each event, and the loss and return of contact.

`python -m tests.conformance.client.follow KUBECONFIG LABEL_SELECTOR`
"""

import asyncio
import sys
from pathlib import Path

from casaba.kube import CONFIG_MAPS, Informer, KubeClient, Synced, load_config
from casaba.kube.resources import Object


async def follow(kubeconfig: Path, selector: str) -> None:
    """For ever."""
    async with KubeClient(load_config(kubeconfig)) as client:
        async with (
            Informer(client, CONFIG_MAPS, label_selector=selector) as informer,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(tell_failures(informer))
            async for event in informer:
                name = "" if isinstance(event, Synced) else f" {event.key.name}"
                print(type(event).__name__ + name, flush=True)


async def tell_failures(informer: Informer[Object]) -> None:
    """One line for each loss of contact."""
    lost = False
    while True:
        if lost != (informer.failure is not None):
            lost = not lost
            print("lost" if lost else "back", flush=True)
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(follow(Path(sys.argv[1]), sys.argv[2]))
