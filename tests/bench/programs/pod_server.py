"""Serves 1300 pods, whole or in pages, and floods every watch with changes of them.

Everything is encoded before it is asked for, so that the client is what is measured.
`python -m tests.bench.programs.pod_server EVENTS` prints its URL.
"""

import asyncio
import json
import sys
from typing import Any

from aiohttp import web

PODS = 1300
_NOTE_CHARS = 1500  # makes the list 4.8 MB, as one with injected sidecars is
_CHUNK_BYTES = 256 * 1024


def pod(number: int, version: int) -> dict[str, Any]:
    """A pod as a server tells it, of 3.7 KB."""
    name = f"edge-model-{number:05}"
    claim = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    container = {
        "name": "serve",
        "image": "registry.example/models/serve:1.2.3",
        "args": ["--port", "8080", "--model", f"/models/{name}"],
        "env": [{"name": f"SETTING_{n}", "value": f"value of {n}"} for n in range(12)],
        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "claims": [{"name": "gpu"}]},
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "metadata": {
            "name": name,
            "namespace": f"site-{number % 40}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "edge-model", "site": f"site-{number % 40}"},
            "annotations": {"note": "x" * _NOTE_CHARS},
        },
        "spec": {
            "nodeName": f"edge-{number % 100}",
            "containers": [container],
            "resourceClaims": claim,
            "volumes": [{"name": "models", "hostPath": {"path": "/models", "type": "Directory"}}],
            "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "serve",
                    "ready": True,
                    "restartCount": 0,
                    "image": container["image"],
                    "imageID": "sha256:0",
                    "containerID": f"containerd://{number:064x}",
                }
            ],
        },
    }


def page(start: int, limit: int) -> bytes:
    """A list from a pod on."""
    end = min(start + limit, PODS)
    metadata = {"resourceVersion": str(PODS)} | ({"continue": str(end)} if end < PODS else {})
    items = [pod(number, number + 1) for number in range(start, end)]
    document = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
    return json.dumps(document, separators=(",", ":")).encode()


def changes(count: int) -> list[bytes]:
    """The lines of a watch, in chunks as large as a busy server sends."""
    lines = bytearray()
    chunks = []
    for number in range(count):
        told = {"type": "MODIFIED", "object": pod(number % PODS, PODS + 1 + number)}
        lines += json.dumps(told, separators=(",", ":")).encode() + b"\n"
        if len(lines) >= _CHUNK_BYTES:
            chunks.append(bytes(lines))
            lines.clear()
    return [*chunks, bytes(lines)]


async def serve(events: int) -> None:
    """Until the process is ended."""
    whole = page(0, PODS)
    pages = {start: page(start, 500) for start in range(0, PODS, 500)}
    flood = changes(events)

    async def pods(request: web.Request) -> web.StreamResponse:
        query = request.query
        if "sendInitialEvents" in query:
            return web.json_response({"code": 422, "reason": "Invalid"}, status=422)
        if "watch" in query:
            return await watched(request)
        body = pages[int(query.get("continue", 0))] if "limit" in query else whole
        return web.Response(body=body, content_type="application/json")

    async def watched(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in flood:
            await response.write(chunk)
        await asyncio.Event().wait()
        return response

    app = web.Application()
    app.router.add_get("/api/v1/pods", pods)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
