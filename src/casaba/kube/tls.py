"""TLS towards the API server, with contexts of our own instead of the library's default."""

import logging
import os
import ssl
from pathlib import Path

from casaba.kube.config import KubeConfig
from casaba.kube.errors import KubeConfigError

log = logging.getLogger(__name__)

ClientPair = tuple[bytes, bytes]
"""A client certificate with its chain, and its key, both PEM."""


class TlsSource:
    """The context for new connections; made anew when files or the client certificate change.

    Connections that are open keep the one they were made with. Raises KubeConfigError at first
    for bad PEM; later, say while files are being replaced, the last good context is kept.
    """

    def __init__(self, config: KubeConfig) -> None:
        self._config = config
        self._plain = config.server.startswith("http://")
        self._pair: ClientPair | None = None
        self._marks = self._files_now()
        self._context = None if self._plain else _context(config, None)

    def current(self, pair: ClientPair | None = None) -> ssl.SSLContext | None:
        """The context, None for plain HTTP; `pair` goes before the configuration's.

        Raises KubeConfigError for a new `pair` that is no good.
        """
        if self._plain:
            return None
        marks = self._files_now()
        if pair != self._pair:
            self._context = _context(self._config, pair)
            self._pair = pair
        elif marks != self._marks:
            self._take_up_files()
        self._marks = marks
        return self._context

    def _take_up_files(self) -> None:
        try:
            self._context = _context(self._config, self._pair)
        except KubeConfigError as error:
            log.warning("kube.credentials_not_taken_up", extra={"error": str(error)})

    def _files_now(self) -> tuple[tuple[int, int] | None, ...]:
        config = self._config
        paths = (config.authority_file, config.client_certificate_file, config.client_key_file)
        return tuple(_mark(path) for path in paths if path)


def _mark(path: Path) -> tuple[int, int] | None:
    """What changes with a file: the kubelet replaces a link, others write in place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _context(config: KubeConfig, pair: ClientPair | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, config)
    if pair := pair or _configured_pair(config):
        _identify(context, config, pair)
    return context


def _trust(context: ssl.SSLContext, config: KubeConfig) -> None:
    pem = _latest(config.authority_file, (config.authority_pem or "").encode()).decode()
    if not pem:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise KubeConfigError(
            f"{config.origin}: certificate-authority holds no PEM certificate: {error}"
        ) from None


def _configured_pair(config: KubeConfig) -> ClientPair | None:
    certificate = _latest(config.client_certificate_file, config.client_certificate_pem or b"")
    key = _latest(config.client_key_file, config.client_key_pem or b"")
    return (certificate, key) if certificate and key else None


def _latest(path: Path | None, before: bytes) -> bytes:
    """What the file holds now; what was read of it when it is away for a moment."""
    try:
        return path.read_bytes() if path else before
    except OSError:
        return before


def _identify(context: ssl.SSLContext, config: KubeConfig, pair: ClientPair) -> None:
    # The ssl module only reads files; one in memory keeps the key off the disk.
    descriptor = os.memfd_create("client-key", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(b"\n".join(pair))
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise KubeConfigError(
            f"{config.origin}: client-certificate and client-key are no matching PEM pair: {error}"
        ) from None
    finally:
        os.close(descriptor)


def _no_password() -> str:
    """Without it, OpenSSL would ask at the terminal for the password of an encrypted key."""
    raise ValueError("the key is encrypted")
