"""Who asks: a client certificate, a service account's token, or one of the tokens of a test.

Source: Kubernetes documentation, "Authenticating".
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from casaba.simulation.api_server.access import Objects, named
from casaba.simulation.api_server.requests import ANONYMOUS, Object, UserInfo
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.authority import ClusterAuthority
from casaba.simulation.service_account_tokens import DEFAULT_AUDIENCES, PRIVATE_CLAIMS

AUTHENTICATED = "system:authenticated"
_ACCOUNTS = "system:serviceaccounts"
_EXTRA = "authentication.kubernetes.io"
_CREDENTIAL_ID = f"{_EXTRA}/credential-id"
_REMEMBERED_CERTIFICATES = 1024


class TokenRefused(Exception):
    """A token that proves nothing; the message is what a TokenReview tells."""


@dataclass(frozen=True, kw_only=True)
class TokenOwner:
    """Whose a token is, and which of the audiences asked about it is for."""

    user: UserInfo
    audiences: tuple[str, ...]


class Authenticator:
    """Turns credentials into a user."""

    def __init__(
        self,
        authority: ClusterAuthority,
        objects: Objects,
        *,
        static_tokens: Mapping[str, UserInfo] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._authority = authority
        self._objects = objects
        self._static_tokens = dict(static_tokens or {})
        self._clock = clock
        self._certificate_user = functools.lru_cache(_REMEMBERED_CERTIFICATES)(
            self._read_certificate
        )

    def user(self, authorization_header: str | None, peer_certificate: bytes | None) -> UserInfo:
        """Whose the credentials of a request are; ANONYMOUS if there are none.

        The certificate (DER) comes from a TLS handshake that looked at its dates. Raises ApiError
        401 for credentials that are wrong.
        """
        if peer_certificate is not None:
            return self._certificate_user(peer_certificate)
        scheme, _, token = (authorization_header or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        try:
            return self.token_owner(token, ()).user
        except TokenRefused:
            raise _unauthorized() from None

    def token_owner(self, token: str, audiences: Sequence[str]) -> TokenOwner:
        """Whose a token is; it must be for one of the audiences (none: this API server).

        Raises TokenRefused.
        """
        wanted = tuple(audiences) or DEFAULT_AUDIENCES
        if (known := self._static_tokens.get(token)) is not None:
            return TokenOwner(user=_authenticated(known), audiences=wanted)
        claims = self._authority.tokens.claims(token)
        if claims is None:
            raise TokenRefused("invalid bearer token")
        self._check_time(claims)
        common = tuple(each for each in claims["aud"] if each in wanted)
        if not common:
            raise _refused(
                f"token audiences {_listed(claims['aud'])} is invalid for the target audiences "
                f"{_listed(wanted)}"
            )
        return TokenOwner(user=self._account(claims), audiences=common)

    def _read_certificate(self, certificate_der: bytes) -> UserInfo:
        try:
            certificate = x509.load_der_x509_certificate(certificate_der)
        except ValueError:
            raise _unauthorized() from None
        if not self._authority.has_issued(certificate):
            raise _unauthorized()
        names = _parts(certificate, NameOID.COMMON_NAME)
        groups = _parts(certificate, NameOID.ORGANIZATION_NAME)
        if not names:
            raise _unauthorized()
        credential = f"X509SHA256={certificate.fingerprint(hashes.SHA256()).hex()}"
        extra = {_CREDENTIAL_ID: (credential,)}
        return _authenticated(UserInfo(username=names[0], groups=groups, extra=extra))

    def _check_time(self, claims: Mapping[str, Any]) -> None:
        now_s = self._clock()
        if now_s >= claims["exp"]:
            raise _refused("service account token has expired")
        if now_s < claims["nbf"]:
            raise _refused("service account token is not valid yet")

    def _account(self, claims: Mapping[str, Any]) -> UserInfo:
        """The service account of a token; it and what it is bound to must still be there."""
        private = claims[PRIVATE_CLAIMS]
        namespace, account = private["namespace"], private["serviceaccount"]
        self._check_account(namespace, account)
        self._check_bound("secret", namespace, private.get("secret"))
        self._check_bound("pod", namespace, private.get("pod"))
        if "pod" not in private:
            self._check_bound("node", "", private.get("node"))
        return UserInfo(
            username=claims["sub"],
            uid=account["uid"],
            groups=(_ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED),
            extra=dict(_extra(claims)),
        )

    def _check_account(self, namespace: str, claimed: Object) -> None:
        found = named(self._objects, "serviceaccounts", namespace, claimed["name"])
        if found is None:
            raise _refused(f'serviceaccounts "{claimed["name"]}" not found')
        if (uid := found["metadata"]["uid"]) != claimed["uid"]:
            raise _refused(f"service account UID ({uid}) does not match claim ({claimed['uid']})")

    def _check_bound(self, kind: str, namespace: str, claimed: Object | None) -> None:
        """What a token is bound to, if it is; another object of the name is not it."""
        if claimed is None:
            return
        found = named(self._objects, f"{kind}s", namespace, claimed["name"])
        if found is None:
            raise _refused("service account token has been invalidated")
        if (uid := found["metadata"]["uid"]) != claimed["uid"]:
            raise _refused(
                f"{kind} UID ({uid}) does not match service account {kind} ref claim "
                f"({claimed['uid']})"
            )


def _refused(why: str) -> TokenRefused:
    return TokenRefused(f"[invalid bearer token, {why}]")


def _extra(claims: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a token tells beside its user (KEP 4193); an admission policy may ask for it."""
    yield _CREDENTIAL_ID, (f"JTI={claims['jti']}",)
    for kind in ("node", "pod"):
        if (reference := claims[PRIVATE_CLAIMS].get(kind)) is not None:
            yield f"{_EXTRA}/{kind}-name", (reference["name"],)
            yield f"{_EXTRA}/{kind}-uid", (reference["uid"],)


def _authenticated(user: UserInfo) -> UserInfo:
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _parts(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(each.value) for each in certificate.subject.get_attributes_for_oid(oid))


def _listed(audiences: Sequence[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in audiences) + "]"


def _unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")
