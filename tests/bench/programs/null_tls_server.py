"""`null_tls_server FOLDER`: takes any body over TLS 1.3 and lets it pass. Prints its port.

What HTTPS costs before anybody has looked at a review; the folder has tls.crt and tls.key.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from casaba.net.certificate_pair import server_context
from casaba.wire.admission import allowing

_BODY_LIMIT_BYTES = 8 << 20
_ANSWER = allowing("null")


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


async def main(folder: Path) -> None:
    """Serve until killed."""
    app = web.Application(client_max_size=_BODY_LIMIT_BYTES)
    app.router.add_post("/mutate", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = server_context("1.3")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
