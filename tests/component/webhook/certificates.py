"""Pairs of certificate and key in files, as a Secret's volume has them, of any age and kind."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = "127.0.0.1"
SERVICE = "casaba-webhook.casaba-system.svc"

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Pair:
    """PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def serial(self) -> int:
        """Tells one certificate from another."""
        return x509.load_pem_x509_certificate(self.certificate).serial_number


class Authority:
    """Signs whatever a test needs."""

    def __init__(self, *, ends_in_s: float = 86_400) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "casaba webhook")])
        self._name = name
        self.certificate = (
            _builder(name, name, self._key, -3600, ends_in_s)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """What clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def client_context(self) -> ssl.SSLContext:
        """TLS of a client that trusts only this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.pem.decode())
        return context

    def pair(
        self,
        *,
        begins_in_s: float = -3600,
        ends_in_s: float = 3600,
        use: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
        key: Key | None = None,
    ) -> Pair:
        """A certificate for the loopback address and the webhook's service."""
        own = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVICE)])
        names = [x509.DNSName(SERVICE), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
        certificate = (
            _builder(subject, self._name, own, begins_in_s, ends_in_s)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _pem(own))


def rsa_key() -> rsa.RSAPrivateKey:
    """A key of the other kind."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def encrypted(pair: Pair) -> Pair:
    """With a key that wants a password."""
    key = serialization.load_pem_private_key(pair.key, None)
    password = serialization.BestAvailableEncryption(b"secret")
    form = serialization.PrivateFormat.PKCS8
    return Pair(pair.certificate, key.private_bytes(serialization.Encoding.PEM, form, password))


@dataclass
class SecretVolume:
    """A folder as the kubelet fills it: links through `..data`, replaced in one step."""

    folder: Path
    generation: int = 0

    def put(self, pair: Pair, authority: bytes | None = None) -> None:
        """Replace all files at once."""
        self.generation += 1
        target = self.folder / f"..{self.generation}"
        target.mkdir(parents=True)
        files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority}
        for name, content in files.items():
            link = self.folder / name
            if content is not None:
                (target / name).write_bytes(content)
                if not link.is_symlink():
                    link.symlink_to(f"..data/{name}")
            elif link.is_symlink():
                link.unlink()
        (self.folder / "..data_tmp").symlink_to(target.name)
        (self.folder / "..data_tmp").replace(self.folder / "..data")


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, begins_in_s: float, ends_in_s: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(seconds=begins_in_s))
        .not_valid_after(now + datetime.timedelta(seconds=ends_in_s))
    )


def _pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
