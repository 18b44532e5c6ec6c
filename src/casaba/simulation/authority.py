"""The certificate authority of a simulated cluster, and everything that it signs.

Keys are EC P-256: made in a millisecond. They live in memory and never reach a disk.
"""

import datetime
import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from casaba.errors import InvalidInput
from casaba.simulation.service_account_tokens import DEFAULT_AUDIENCES, BoundObject, TokenIssuer

_VALIDITY = datetime.timedelta(days=365)
# A certificate must not come from the future of a process whose clock is read a little earlier.
_BACKDATED = datetime.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class ClusterAuthority:
    """Signs the certificates and service account tokens of one simulated cluster."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    tokens: TokenIssuer = field(default_factory=TokenIssuer, repr=False)

    @classmethod
    def create(cls) -> "ClusterAuthority":
        """A new authority that nobody else knows."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject("kubernetes", ())
        builder = _unsigned(subject, subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), True)
        return cls(certificate=builder.sign(key, hashes.SHA256()), key=key)

    @property
    def authority_pem(self) -> str:
        """The certificate that clients, servers and webhooks are to trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server_context(self, names: Sequence[str]) -> ssl.SSLContext:
        """TLS for a server at these DNS names and IP addresses.

        It asks for a client certificate of this authority, and lets clients without one in.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(cadata=self.authority_pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        _identify(context, *self.server_certificate(names))
        return context

    def client_context(self, username: str = "", groups: Sequence[str] = ()) -> ssl.SSLContext:
        """TLS for a client of this cluster's servers; with a certificate if it has a name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(cadata=self.authority_pem)
        if username:
            _identify(context, *self.client_certificate(username, groups))
        return context

    def client_certificate(self, username: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and key, PEM. Kubernetes reads the user from CN, the groups from O.

        Raises InvalidInput for a name longer than X.509 allows (64 characters).
        """
        return self._issued(_subject(username, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server_certificate(self, names: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and key, PEM, of a server at these DNS names and IP addresses."""
        # The names proper are alternative names; the subject only tells people what this is.
        return self._issued(_subject("server", ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Whether this authority signed a certificate; its dates are not looked at."""
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def service_account_token(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        pod: tuple[str, str] | None = None,
        node: tuple[str, str] | None = None,
        audiences: Sequence[str] = DEFAULT_AUDIENCES,
        lifetime_s: int,
        now_s: int,
    ) -> str:
        """A signed token as TokenRequest gives it; `pod` and `node` are (name, uid)."""
        return self.tokens.token(
            namespace,
            BoundObject(name=name, uid=uid),
            pod=BoundObject(name=pod[0], uid=pod[1]) if pod else None,
            node=BoundObject(name=node[0], uid=node[1]) if node else None,
            audiences=audiences,
            lifetime_s=lifetime_s,
            now_s=now_s,
        )

    def _issued(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: Sequence[str]
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _unsigned(subject, self.certificate.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), False)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer_key, False)
        if names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
            builder = builder.add_extension(alternatives, False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    try:
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
        return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as error:
        raise InvalidInput(
            f"user {common_name!r} in groups {list(organizations)} has no certificate: {error}; "
            "use names of 1 to 64 characters, or a token"
        ) from None


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _identify(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    # The ssl module only reads files; one in memory keeps the key off the disk.
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(certificate_pem + key_pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
