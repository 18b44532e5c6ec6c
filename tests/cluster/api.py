"""The few questions that starting the bed asks of its API server."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

_REQUEST_TIMEOUT_S = 5.0


class ApiServer:
    """A client of the API server with a kubeconfig of the bed's own making."""

    def __init__(self, kubeconfig: Path) -> None:
        told = json.loads(kubeconfig.read_text())
        cluster, user = told["clusters"][0]["cluster"], told["users"][0]["user"]
        url = urlsplit(cluster["server"])
        self._address = (str(url.hostname), int(url.port or 443))
        self._tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as identity:  # ssl reads certificates from files only
            for field in ("client-certificate-data", "client-key-data"):
                identity.write(base64.b64decode(user[field]))
            identity.flush()
            self._tls.load_cert_chain(identity.name)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one GET; status 0 when the server could not be reached."""
        connection = self.connection(_REQUEST_TIMEOUT_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def connection(self, timeout_s: float) -> http.client.HTTPSConnection:
        """A connection of the caller's own, not opened yet; each wait on it ends in `timeout_s`."""
        return http.client.HTTPSConnection(*self._address, context=self._tls, timeout=timeout_s)

    def object(self, path: str) -> dict[str, Any] | None:
        """The object at `path`; None if the server did not answer with one."""
        status, body = self.get(path)
        return cast(dict[str, Any], json.loads(body)) if status == 200 else None


def is_ready(node: dict[str, Any] | None) -> bool:
    """Whether a Node object's Ready condition is True."""
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
