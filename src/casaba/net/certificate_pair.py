"""A server's certificate and key: read from files, and tried before anybody depends on them."""

import contextlib
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from casaba.errors import InvalidInput

TlsVersion = Literal["1.2", "1.3"]

_VERSIONS: Mapping[TlsVersion, ssl.TLSVersion] = {
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}

_ALPN = ("http/1.1",)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_FILE_BYTES = 1 << 20
"""The API server's limit of a Secret."""

_DATA_LINK = "..data"
"""In a Secret's volume: the folder of this generation, replaced atomically (kubelet)."""

_EXPIRED, _NOT_YET_VALID = 10, 9
"""Codes of OpenSSL's verification."""

_FLIGHTS = 10
"""A handshake takes three."""


class BadPair(InvalidInput):
    """Certificate and key that can't be served."""


@dataclass(frozen=True, kw_only=True)
class CertificateFiles:
    """Where a pair is, as in the volume of a Secret of type kubernetes.io/tls."""

    folder: Path
    certificate: str = "tls.crt"
    """PEM, the server's own first, then the authorities between it and the root."""
    key: str = "tls.key"
    authority: str = "ca.crt"
    """PEM, may be missing; only its expiry is looked at."""

    def read(self) -> "PairContents":
        """What the files hold now; raises BadPair.

        In a Secret's volume all come from one generation, even while the kubelet puts in the next.
        """
        for last in (False, True):
            try:
                return self._read_once()
            except OSError as error:  # its folder may have been replaced under us
                if last:
                    raise BadPair(f"can't read {error.filename}: {error.strerror}") from error
        raise AssertionError("unreachable")

    def _read_once(self) -> "PairContents":
        link = self.folder / _DATA_LINK
        folder = link.resolve() if link.exists() else self.folder
        try:
            authority = _content(folder / self.authority)
        except FileNotFoundError:
            authority = b""
        return PairContents(
            certificate=_content(folder / self.certificate),
            key=_content(folder / self.key),
            authority=authority,
        )


@dataclass(frozen=True, kw_only=True)
class PairContents:
    """The bytes of a pair."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes = b""


@dataclass(frozen=True, kw_only=True, eq=False)
class CertificatePair:
    """A pair that has served a handshake."""

    context: ssl.SSLContext
    expires_at_s: float
    """When the certificate ends, Unix time in seconds."""
    authority_expires_at_s: float | None
    """When the last of its authorities ends; None where they are not known."""


def tried_pair(contents: PairContents, minimum: TlsVersion) -> CertificatePair:
    """A pair after a handshake with itself in memory; raises BadPair.

    So what is taken fits together, is a server's, and is valid now.
    """
    context = server_context(minimum)
    _load(context, contents)
    return CertificatePair(
        context=context,
        expires_at_s=_expiry_by_handshake(context, contents.certificate),
        authority_expires_at_s=_last_expiry(contents.authority),
    )


def server_context(minimum: TlsVersion) -> ssl.SSLContext:
    """TLS for a server, as yet without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[minimum]
    context.set_alpn_protocols(_ALPN)
    # A session that is resumed would go on with the certificate of its beginning.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context


def _load(context: ssl.SSLContext, contents: PairContents) -> None:
    try:
        with _as_file(contents.certificate) as certificate, _as_file(contents.key) as key:
            context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or "not PEM"
        if reason == "KEY_VALUES_MISMATCH":
            raise BadPair("the key does not belong to the certificate") from None
        raise BadPair(f"certificate or key can't be read as PEM: {reason}") from None


def _no_password() -> bytes:
    """Instead of a question on the terminal."""
    return b""


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path of something that is only in memory: the ssl module reads files only."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _expiry_by_handshake(server: ssl.SSLContext, chain: bytes) -> float:
    """When the first certificate of a chain ends, as a client sees it that trusts just this one."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        own = _CERTIFICATE.search(chain)
        client.load_verify_locations(cadata=own.group().decode("ascii") if own else "")
        told = _certificate_in_handshake(client, server)
        return float(ssl.cert_time_to_seconds(str(told["notAfter"])))
    except ssl.SSLCertVerificationError as error:
        raise BadPair(_refusal(error)) from None
    except (ssl.SSLError, ValueError, KeyError) as error:
        reason = getattr(error, "reason", None) or error
        raise BadPair(f"the certificate can't serve a handshake: {reason}") from None


def _certificate_in_handshake(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> Mapping[str, object]:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_FLIGHTS):
        done = [_step(asking), _step(serving)]
        if all(done):
            break
    return asking.getpeercert() or {}


def _step(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _refusal(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "the certificate has expired"
    if error.verify_code == _NOT_YET_VALID:
        return "the certificate is not valid yet; are the clocks right?"
    return f"the certificate is not a server's: {error.verify_message}"


def _last_expiry(authority: bytes) -> float | None:
    """When the last of some authorities ends; None for none, or for what is no PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return None
    ends = [str(found["notAfter"]) for found in context.get_ca_certs() if "notAfter" in found]
    return max((float(ssl.cert_time_to_seconds(end)) for end in ends), default=None)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_FILE_BYTES)
