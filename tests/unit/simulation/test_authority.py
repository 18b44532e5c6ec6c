import ssl

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.simulation.authority import ClusterAuthority

AUTHORITY = ClusterAuthority.create()
NOW_S = 1_700_000_000


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """The server's end of a TLS handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    client_end = client.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [client_end, server_end]
    while waiting:
        end = waiting.pop(0)
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(end)
    return server_end


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "hook.default.svc"])
def test_a_server_is_who_its_certificate_says(name: str) -> None:
    server = AUTHORITY.server_context(["127.0.0.1", "::1", "hook.default.svc"])
    shaken(server, AUTHORITY.client_context(), name)


def test_a_server_under_another_name_is_refused() -> None:
    server = AUTHORITY.server_context(["127.0.0.1"])
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(server, AUTHORITY.client_context(), "127.0.0.2")


def test_the_certificates_satisfy_strict_verification() -> None:
    client = AUTHORITY.client_context()
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    shaken(AUTHORITY.server_context(["localhost"]), client, "localhost")


def test_a_client_without_a_certificate_is_let_in() -> None:
    end = shaken(AUTHORITY.server_context(["localhost"]), AUTHORITY.client_context(), "localhost")
    assert end.getpeercert(binary_form=True) is None


def test_a_client_s_certificate_tells_user_and_groups() -> None:
    client = AUTHORITY.client_context("anna", ["operators", "system:masters"])
    end = shaken(AUTHORITY.server_context(["localhost"]), client, "localhost")
    subject = x509.load_der_x509_certificate(end.getpeercert(binary_form=True) or b"").subject
    assert subject.rfc4514_string() == "CN=anna,O=system:masters,O=operators"


def test_another_authority_s_client_is_refused() -> None:
    client = ClusterAuthority.create().client_context("anna")
    client.load_verify_locations(cadata=AUTHORITY.authority_pem)
    with pytest.raises(ssl.SSLError):
        shaken(AUTHORITY.server_context(["localhost"]), client, "localhost")


def test_only_own_certificates_are_known_again() -> None:
    own, _ = AUTHORITY.client_certificate("anna", [])
    foreign, _ = ClusterAuthority.create().client_certificate("anna", [])
    assert AUTHORITY.has_issued(x509.load_pem_x509_certificate(own))
    assert not AUTHORITY.has_issued(x509.load_pem_x509_certificate(foreign))


def test_a_name_too_long_for_a_certificate_is_refused_with_the_limit() -> None:
    with pytest.raises(InvalidInput, match="64"):
        AUTHORITY.client_certificate("a" * 65, [])


def test_a_token_has_the_claims_of_the_real_one() -> None:
    token = AUTHORITY.service_account_token(
        "ns",
        "agent",
        "account-uid",
        pod=("agent-x", "pod-uid"),
        node=("edge-1", "node-uid"),
        audiences=["somebody"],
        lifetime_s=600,
        now_s=NOW_S,
    )
    claims = dict(AUTHORITY.tokens.claims(token) or {})
    assert len(claims.pop("jti")) == 36
    assert claims == {
        "aud": ["somebody"],
        "exp": NOW_S + 600,
        "iat": NOW_S,
        "iss": "https://kubernetes.default.svc",
        "kubernetes.io": {
            "namespace": "ns",
            "node": {"name": "edge-1", "uid": "node-uid"},
            "pod": {"name": "agent-x", "uid": "pod-uid"},
            "serviceaccount": {"name": "agent", "uid": "account-uid"},
        },
        "nbf": NOW_S,
        "sub": "system:serviceaccount:ns:agent",
    }


def test_another_issuer_s_token_is_unknown() -> None:
    other = ClusterAuthority.create()
    token = other.service_account_token("ns", "agent", "uid", lifetime_s=600, now_s=NOW_S)
    assert other.tokens.claims(token)
    assert AUTHORITY.tokens.claims(token) is None


TOKEN = AUTHORITY.service_account_token("ns", "agent", "uid", lifetime_s=600, now_s=NOW_S)


@given(st.integers(0, len(TOKEN) - 1), st.sampled_from("abcXYZ019-_.=+ é"))
def test_a_changed_token_is_unknown_or_means_the_same(at: int, letter: str) -> None:
    changed = TOKEN[:at] + letter + TOKEN[at + 1 :]
    known = AUTHORITY.tokens.claims(changed)
    # The last letter's low bits stand for nothing.
    assert known is None or changed[:-1] == TOKEN[:-1]


@given(st.text(max_size=50))
def test_any_text_is_no_token(text: str) -> None:
    assert AUTHORITY.tokens.claims(text) is None
