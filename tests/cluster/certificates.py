"""Certificates and kubeconfigs of one bed: made afresh at each start, EC P-256."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = datetime.timedelta(days=365)
# A certificate must not come from the future of a process whose clock is read a little earlier.
_BACKDATED = datetime.timedelta(hours=1)
_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as files and in memory."""

    folder: Path
    name: str
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def crt(self) -> Path:
        return self.folder / f"{self.name}.crt"

    @property
    def private(self) -> Path:
        return self.folder / f"{self.name}.key"

    def write(self) -> KeyPair:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.crt.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(self.private, self.key)
        return self


def authority(folder: Path, name: str, key: ec.EllipticCurvePrivateKey | None = None) -> KeyPair:
    """A self-signed certificate authority, with a key that it had before or a new one."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name, ())
    certificate = (
        _unsigned(subject, subject, key, signed_by=key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
    )
    return KeyPair(folder, name, certificate.sign(key, hashes.SHA256()), key).write()


def client(by: KeyPair, folder: Path, name: str, user: str, groups: Sequence[str] = ()) -> KeyPair:
    """A client certificate: Kubernetes reads the user from CN and the groups from O."""
    return _issued(by, folder, name, _subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())


def server(by: KeyPair, folder: Path, name: str, addresses: Sequence[str]) -> KeyPair:
    """A server certificate for DNS names and IP addresses."""
    subject = _subject(addresses[0], ())
    return _issued(by, folder, name, subject, ExtendedKeyUsageOID.SERVER_AUTH, addresses)


def signing_key(folder: Path, name: str) -> tuple[Path, Path]:
    """A bare key pair for service account tokens: (private, public) files."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    _write_key(private, key)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def write_kubeconfig(file: Path, url: str, trusted: KeyPair, identity: KeyPair) -> None:
    """A kubeconfig with everything inside, readable by its owner only."""
    entry = {"cluster": "bed", "user": identity.name}
    told = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "bed", "cluster": {"server": url} | _inline("certificate-authority", trusted)}
        ],
        "users": [
            {
                "name": identity.name,
                "user": _inline("client-certificate", identity)
                | {"client-key-data": base64.b64encode(identity.private.read_bytes()).decode()},
            }
        ],
        "contexts": [{"name": "bed", "context": entry}],
        "current-context": "bed",
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(told, indent=1))


def _inline(field: str, pair: KeyPair) -> dict[str, str]:
    return {f"{field}-data": base64.b64encode(pair.crt.read_bytes()).decode()}


def _issued(
    by: KeyPair,
    folder: Path,
    name: str,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    addresses: Sequence[str],
) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _unsigned(subject, by.certificate.subject, key, signed_by=by.key).add_extension(
        x509.ExtendedKeyUsage([usage]), critical=False
    )
    if addresses:
        names = x509.SubjectAlternativeName([_general_name(address) for address in addresses])
        builder = builder.add_extension(names, critical=False)
    return KeyPair(folder, name, builder.sign(by.key, hashes.SHA256()), key).write()


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    signed_by: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    own, signer = key.public_key(), signed_by.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(own)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
