"""`python -m casaba.simulation.api_server [KUBECONFIG]`: run one until interrupted."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import yaml

from casaba.simulation.api_server.server import SimulatedApiServer


async def serve(kubeconfig: Path) -> None:
    """Serve, with an administrator's kubeconfig in a file."""
    async with SimulatedApiServer() as server:
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
        print(f"{server.url}; try: kubectl --kubeconfig {kubeconfig} get namespaces", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(Path(sys.argv[1] if len(sys.argv) > 1 else "simulated.kubeconfig")))
