"""Certificates for a test: an authority, and what it issues."""

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    certificate_pem: bytes
    key_pem: bytes


class Authority:
    """Issues certificates that are valid for an hour."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        builder = _builder(self._name, self._name, self._key.public_key())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = builder.add_extension(constraints, critical=True).sign(
            self._key, hashes.SHA256()
        )

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, common_name: str, *, address: str | None = None) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name), self._name, key.public_key())
        names: list[x509.GeneralName] = [x509.DNSName(common_name)]
        if address:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
