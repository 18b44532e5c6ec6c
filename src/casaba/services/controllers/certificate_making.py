"""X.509 certificates as bytes: made, read, compared. No I/O but the system's random numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from casaba.policy.certificates import Fault, Fingerprint, Held

VALID_FROM = datetime(2020, 1, 1, tzinfo=UTC)
"""So early that a clock that is set wrong makes nothing that others take for not valid yet."""

UNREADABLE = "unreadable"
"""Stands in a bundle for what is no certificate."""

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def held(self) -> Held:
        """What policy needs to know of it."""
        return Held(
            fingerprint=fingerprint(self.certificate),
            expires_at=self.certificate.not_valid_after_utc,
        )

    @property
    def certificate_pem(self) -> bytes:
        """The certificate."""
        return as_pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        """The key, PKCS 8."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def new_authority(now: datetime, lifetime_s: float) -> Pair:
    """An authority that signs itself; no other has its subject, so that bundles are plain."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = _name(f"casaba webhook authority {serial & 0xFFFFFFFF:08x}")
    until = now + timedelta(seconds=lifetime_s)
    builder = (
        _unsigned(name, name, key, until)
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_others=True), critical=True)
    )
    return Pair(certificate=builder.sign(key, hashes.SHA256()), key=key)


def new_serving(authority: Pair, names: Sequence[str], now: datetime, lifetime_s: float) -> Pair:
    """A certificate for a server of these DNS names; it ends with its authority at the latest."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = authority.certificate
    until = min(now + timedelta(seconds=lifetime_s), signer.not_valid_after_utc)
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    signer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _unsigned(_name("casaba webhook"), signer.subject, key, until)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_others=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(signer_key, critical=False)
        .add_extension(alternatives, critical=False)
    )
    return Pair(certificate=builder.sign(authority.key, hashes.SHA256()), key=key)


def read_pair(certificate_pem: bytes, key_pem: bytes) -> Pair | Fault:
    """The pair of two PEM texts, or what is wrong with them."""
    if not certificate_pem and not key_pem:
        return Fault.MISSING
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = load_pem_private_key(key_pem, password=None)
        theirs = _public_bytes(certificate.public_key())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return Fault.UNREADABLE
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return Fault.UNREADABLE
    if theirs != _public_bytes(key.public_key()):
        return Fault.KEY_MISMATCH
    return Pair(certificate=certificate, key=key)


def authority_fault(pair: Pair) -> Fault | None:
    """Why a pair can't sign for us; None if it can."""
    try:
        constraints = pair.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, ValueError):
        return Fault.NOT_AN_AUTHORITY
    return None if constraints.value.ca else Fault.NOT_AN_AUTHORITY


def serving_fault(pair: Pair, authority: x509.Certificate, names: Iterable[str]) -> Fault | None:
    """Why a pair can't serve these names under the authority; None if it can."""
    try:
        pair.certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return Fault.OTHER_SIGNER
    try:
        extension = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return Fault.OTHER_NAMES
    has = set(extension.value.get_values_for_type(x509.DNSName))
    return None if set(names) <= has else Fault.OTHER_NAMES


def signer_of(pair: Pair | Fault, claimed: bytes) -> x509.Certificate | None:
    """The authority's certificate if it is true that it signed the pair's."""
    if isinstance(pair, Fault):
        return None
    try:
        signer = x509.load_pem_x509_certificate(claimed)
        pair.certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return None
    return signer


def read_bundle(pem: bytes) -> dict[Fingerprint, bytes]:
    """The certificates of a bundle, each as PEM; what is none is there once as UNREADABLE."""
    found: dict[Fingerprint, bytes] = {}
    rest = pem
    while (start := rest.find(_BEGIN)) >= 0 and (end := rest.find(_END, start)) >= 0:
        one, rest = rest[start : end + len(_END)], rest[:start] + rest[end + len(_END) :]
        try:
            certificate = x509.load_pem_x509_certificate(one)
        except ValueError:
            found[UNREADABLE] = b""
        else:
            found[fingerprint(certificate)] = as_pem(certificate)
    if rest.strip():
        found[UNREADABLE] = b""
    return found


def extended_bundle(pem: bytes, wanted: Mapping[Fingerprint, bytes]) -> bytes:
    """What a bundle holds, and what it must hold, without what is no certificate."""
    together = read_bundle(pem) | dict(wanted)
    return b"".join(one for name, one in together.items() if name != UNREADABLE)


def fingerprint(certificate: x509.Certificate) -> Fingerprint:
    """SHA-256 of the DER, hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def as_pem(certificate: x509.Certificate) -> bytes:
    """The text of a certificate."""
    return certificate.public_bytes(Encoding.PEM)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .not_valid_before(VALID_FROM)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_others: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_others,
        crl_sign=signs_others,
        encipher_only=False,
        decipher_only=False,
    )


def _public_bytes(key: object) -> bytes:
    """Comparable; raises TypeError for a kind of key that nobody signs with."""
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
