"""Service account tokens: JWTs with the claims of the real API server, signed with ES256.

Sources: RFC 7515 and RFC 7518 3.4 (the signature is r and s, 32 bytes each), KEP 1205 (bound
tokens), KEP 4193 (node and token id in the claims).
"""

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

ISSUER = "https://kubernetes.default.svc"
DEFAULT_AUDIENCES = (ISSUER,)
"""What a token is for when its request names no audience: this API server."""
PRIVATE_CLAIMS = "kubernetes.io"
_COORDINATE_BYTES = 32
_ALGORITHM = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True, kw_only=True)
class BoundObject:
    """What a token is bound to: it ends with that object."""

    name: str
    uid: str


@dataclass(frozen=True, kw_only=True)
class TokenIssuer:
    """Signs service account tokens, and knows its own again."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1()), repr=False
    )

    def token(
        self,
        namespace: str,
        account: BoundObject,
        *,
        pod: BoundObject | None = None,
        node: BoundObject | None = None,
        secret: BoundObject | None = None,
        audiences: Sequence[str] = DEFAULT_AUDIENCES,
        lifetime_s: int,
        now_s: int,
    ) -> str:
        """A token of an account, good for `lifetime_s` seconds from `now_s` (since 1970)."""
        private: dict[str, Any] = {"namespace": namespace}
        for name, bound in (
            ("node", node),
            ("pod", pod),
            ("secret", secret),
            ("serviceaccount", account),
        ):
            if bound is not None:
                private[name] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences),
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            PRIVATE_CLAIMS: private,
            "nbf": now_s,
            "sub": f"system:serviceaccount:{namespace}:{account.name}",
        }
        signed = f"{_json_part({'alg': 'ES256', 'kid': self._key_id()})}.{_json_part(claims)}"
        return f"{signed}.{_base64url(self._signature(signed.encode()))}"

    def claims(self, token: str) -> Mapping[str, Any] | None:
        """The claims of a token that this issuer signed, None of any other text.

        Times and audience are the caller's to check.
        """
        signed, _, signature = token.rpartition(".")
        try:
            if not self._has_signed(signed.encode(), _base64url_decoded(signature)):
                return None
            header, claims = (json.loads(_base64url_decoded(part)) for part in signed.split("."))
        except (ValueError, binascii.Error):
            return None
        ours = isinstance(header, dict) and header.get("alg") == "ES256"
        return claims if ours and isinstance(claims, dict) else None

    def _key_id(self) -> str:
        public = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _base64url(hashlib.sha256(public).digest())

    def _signature(self, signed: bytes) -> bytes:
        r, s = decode_dss_signature(self.key.sign(signed, _ALGORITHM))
        return r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")

    def _has_signed(self, signed: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _COORDINATE_BYTES:
            return False
        r = int.from_bytes(signature[:_COORDINATE_BYTES], "big")
        s = int.from_bytes(signature[_COORDINATE_BYTES:], "big")
        try:
            self.key.public_key().verify(encode_dss_signature(r, s), signed, _ALGORITHM)
        except InvalidSignature:
            return False
        return True


def _json_part(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _base64url_decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
