"""Runs the program that supplies our credentials, and keeps what it said while that holds.

Source: Kubernetes' "Authenticating", client-go credential plugins (ExecCredential v1, v1beta1).
No message repeats the token, the key or the certificate that the program prints, nor what it is
told by arguments and environment.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from casaba.kube.config import ExecPlugin
from casaba.kube.errors import KubeConfigError
from casaba.wire.kubernetes import ExecCredential, ExecCredentialStatus

RUN_LIMIT_S = 60.0
LOGIN_LIMIT_S = 300.0
"""The limit for a program that may talk with the person at the terminal."""

END_LIMIT_S = 2.0
"""How long to wait for a killed program, whose output something else may still hold open."""

OUTPUT_LIMIT_BYTES = 1024 * 1024
RENEW_BEFORE_S = 60.0
"""A credential is replaced this long before its end, but not in the first half of its life."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, a client certificate with its key, or all of them."""

    token: str | None = field(default=None, repr=False)
    certificate_pem: bytes | None = None
    key_pem: bytes | None = field(default=None, repr=False)
    renew_at_s: float | None = None
    """When to ask for another, by the wall clock; None: when this one is refused."""


class ExecCredentials:
    """What one plugin says. Many may ask at once: it runs once for all of them.

    Every way of not getting a credential raises KubeConfigError: never do we go on unnamed.
    """

    def __init__(
        self, plugin: ExecPlugin, origin: str, *, now_s: Callable[[], float] = time.time
    ) -> None:
        self._plugin = plugin
        self._origin = origin
        self._now_s = now_s
        self._running = asyncio.Lock()
        self._credential: Credential | None = None

    async def current(self) -> Credential:
        """The credential to use now; raises KubeConfigError. If cancelled: the program is ended."""
        async with self._running:
            known = self._credential
            if known is None or (known.renew_at_s and self._now_s() >= known.renew_at_s):
                known = self._credential = await self._ask()
            return known

    async def renewed(self, refused: Credential) -> bool:
        """Replace a credential that the server refused, unless that was done meanwhile.

        Whether there is another one now, worth another try.
        """
        async with self._running:
            if self._credential is refused:
                self._credential = await self._ask()
            return self._credential != refused

    async def _ask(self) -> Credential:
        interactive = self._is_interactive()
        output = await self._output(interactive)
        try:
            answer = msgspec.json.decode(output, type=ExecCredential)
        except msgspec.DecodeError:
            raise self._failed("printed no ExecCredential as JSON") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            raise self._failed(
                f"answered with {answer.api_version!r} {answer.kind!r}; "
                f"the kubeconfig wants {self._plugin.api_version!r} 'ExecCredential'"
            )
        if answer.status is None:
            raise self._failed("answered without a status")
        return self._credential_of(answer.status)

    def _credential_of(self, status: ExecCredentialStatus) -> Credential:
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key):
            raise self._failed("gave one of clientCertificateData and clientKeyData, not both")
        if not status.token and not certificate:
            raise self._failed("gave neither a token nor a client certificate")
        return Credential(
            token=status.token or None,
            certificate_pem=certificate.encode() or None,
            key_pem=key.encode() or None,
            renew_at_s=self._renewal_s(status.expiration_timestamp),
        )

    def _renewal_s(self, expiration: str | None) -> float | None:
        if not expiration:
            return None
        try:
            end_s = datetime.fromisoformat(expiration).timestamp()
        except ValueError:
            raise self._failed(f"gave {expiration!r} as expirationTimestamp, no time") from None
        return max(end_s - RENEW_BEFORE_S, (self._now_s() + end_s) / 2)

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        at_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not at_terminal:
            raise self._failed(
                "wants to ask a person (interactiveMode: Always); run this at a terminal, "
                "or use another user in the kubeconfig"
            )
        return mode != "Never" and at_terminal

    async def _output(self, interactive: bool) -> bytes:
        limit_s = LOGIN_LIMIT_S if interactive else RUN_LIMIT_S
        process = await self._started(interactive)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(limit_s):
                output = await _read_all(process.stdout)
                if len(output) > OUTPUT_LIMIT_BYTES:
                    raise self._failed(f"printed more than {OUTPUT_LIMIT_BYTES} bytes")
                code = await process.wait()
        except TimeoutError:
            raise self._failed(f"did not end within {limit_s:g} s") from None
        finally:
            await _ended(process, with_group=not interactive)
        if code != 0:
            raise self._failed(f"ended with exit code {code}; it may have said why on stderr")
        return output

    async def _started(self, interactive: bool) -> asyncio.subprocess.Process:
        plugin = self._plugin
        try:
            return await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.arguments,
                env={**os.environ, **plugin.environment, **self._told(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=not interactive,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "has a name or argument no program can get"
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise self._failed(f"can't be started: {reason}{hint}") from None

    def _told(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": interactive}
        if self._plugin.cluster is not None:
            spec["cluster"] = self._plugin.cluster
        told = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(told).decode()}

    def _failed(self, what: str) -> KubeConfigError:
        return KubeConfigError(f"{self._origin}: exec plugin {self._plugin.command!r} {what}")


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    """All of a stream, or a little more than the limit of it."""
    output = b""
    while len(output) <= OUTPUT_LIMIT_BYTES and (chunk := await stream.read(65536)):
        output += chunk
    return output


async def _ended(process: asyncio.subprocess.Process, *, with_group: bool) -> None:
    """Leave no program behind that has not ended by itself, nor what it waits for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            if with_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    assert process.stdout is not None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_LIMIT_S):
            while await process.stdout.read(65536):
                pass  # asyncio takes a process for ended only when its output was read
            await process.wait()
