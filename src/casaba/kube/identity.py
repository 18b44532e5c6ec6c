"""Who we are in each request, from all the places that a configuration can name."""

import ssl
from dataclasses import dataclass
from urllib.parse import quote

from casaba.kube.config import Impersonation, KubeConfig
from casaba.kube.exec_credentials import Credential, ExecCredentials
from casaba.kube.tls import TlsSource
from casaba.kube.tokens import TokenSource

Headers = tuple[tuple[str, str], ...]
"""Names and values; a name may come more than once."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What one request proves itself with."""

    tls: ssl.SSLContext | None
    headers: Headers
    credential: Credential | None
    """The plugin's, if it comes from one."""


class Identity:
    """Tokens, client certificates and what a plugin says, each as of now.

    A token of the configuration goes before the plugin, as in client-go. Raises KubeConfigError.
    """

    def __init__(self, config: KubeConfig) -> None:
        self._tls = TlsSource(config)
        self._tokens = TokenSource(config)
        needs_plugin = config.exec_plugin and self._tokens.current() is None
        self._plugin = (
            ExecCredentials(config.exec_plugin, config.origin)
            if config.exec_plugin and needs_plugin
            else None
        )
        self._as = _impersonation_headers(config.impersonate)

    async def proof(self) -> Proof:
        """For a request now; raises KubeConfigError."""
        credential = await self._plugin.current() if self._plugin else None
        token = credential.token if credential else self._tokens.current()
        headers = self._as
        if token:
            headers = (*headers, ("Authorization", f"Bearer {token}"))
        pair = (
            (credential.certificate_pem, credential.key_pem)
            if credential and credential.certificate_pem and credential.key_pem
            else None
        )
        return Proof(self._tls.current(pair), headers, credential)

    async def renewed(self, refused: Proof) -> bool:
        """After a 401: whether we have another proof now, worth another try."""
        if self._plugin and refused.credential:
            return await self._plugin.renewed(refused.credential)
        return self._tokens.refused()


def _impersonation_headers(who: Impersonation | None) -> Headers:
    if who is None:
        return ()
    return (
        ("Impersonate-User", who.user),
        *([("Impersonate-Uid", who.uid)] if who.uid else []),
        *(("Impersonate-Group", group) for group in who.groups),
        *(
            (f"Impersonate-Extra-{quote(key, safe='')}", value)
            for key, values in who.extra.items()
            for value in values
        ),
    )
