"""Lists the pods of a server some times and prints, as JSON, the times in ms and our PSS in KiB.

`python -m tests.bench.programs.list_pods {casaba|kubernetes} URL TIMES`: one fresh process for
each client, which imports nothing of the other.
"""

import asyncio
import json
import sys
import time
from pathlib import Path


def pss_kib() -> int:
    """Our share of all memory that we map, proc(5)."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


async def with_casaba(url: str, times: int) -> tuple[list[float], int]:
    from casaba.kube import PODS, KubeClient, KubeConfig

    taken = []
    async with KubeClient(KubeConfig(origin="bench", server=url)) as client:
        for _ in range(times):
            started = time.perf_counter()
            listed = await client.list(PODS)
            taken.append((time.perf_counter() - started) * 1000)
        return taken, len(listed.items)


def with_kubernetes(url: str, times: int) -> tuple[list[float], int]:
    from kubernetes import client

    taken = []
    api = client.CoreV1Api(client.ApiClient(client.Configuration(host=url)))
    for _ in range(times):
        started = time.perf_counter()
        listed = api.list_pod_for_all_namespaces()
        taken.append((time.perf_counter() - started) * 1000)
    return taken, len(listed.items)


def main(which: str, url: str, times: int) -> None:
    """Measure and tell."""
    if which == "casaba":
        taken, count = asyncio.run(with_casaba(url, times))
    else:
        taken, count = with_kubernetes(url, times)
    print(json.dumps({"ms": taken, "pss_kib": pss_kib(), "pods": count}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
