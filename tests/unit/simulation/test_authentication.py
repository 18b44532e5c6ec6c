import hashlib
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from casaba.simulation.api_server.authentication import Authenticator, TokenRefused
from casaba.simulation.api_server.requests import ANONYMOUS, UserInfo
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.authority import ClusterAuthority
from tests.unit.simulation.small_cluster import SmallCluster

AUTHORITY = ClusterAuthority.create()
NOW_S = 1_700_000_000
LIFETIME_S = 600


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s: float = NOW_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster()
    cluster.add_account("agent")
    cluster.add("nodes", {"metadata": {"name": "edge-1"}})
    cluster.add_pod("agent-x", "edge-1")
    return cluster


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(cluster: SmallCluster, clock: Clock) -> Authenticator:
    return Authenticator(AUTHORITY, cluster, clock=clock)


def account_token(bound: bool = True, **fields: object) -> str:
    options = {"lifetime_s": LIFETIME_S, "now_s": NOW_S, **fields}
    if bound:
        options |= {"pod": ("agent-x", "uid-agent-x"), "node": ("edge-1", "uid-edge-1")}
    return AUTHORITY.service_account_token(
        "default",
        "agent",
        "uid-agent",
        **options,  # type: ignore[arg-type]
    )


def der(certificate_pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(certificate_pem).public_bytes(Encoding.DER)


def is_unauthorized(error: ApiError) -> bool:
    return error.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_certificate_tells_user_groups_and_its_fingerprint(authenticator: Authenticator) -> None:
    certificate = der(AUTHORITY.client_certificate("anna", ["operators"])[0])
    credential = f"X509SHA256={hashlib.sha256(certificate).hexdigest()}"
    assert authenticator.user(None, certificate) == UserInfo(
        username="anna",
        groups=("operators", "system:authenticated"),
        extra={"authentication.kubernetes.io/credential-id": (credential,)},
    )


@pytest.mark.parametrize("certificate", [b"", b"no certificate"])
def test_what_is_no_certificate_is_401(authenticator: Authenticator, certificate: bytes) -> None:
    with pytest.raises(ApiError) as refusal:
        authenticator.user(None, certificate)
    assert is_unauthorized(refusal.value)


def test_another_authority_s_certificate_is_401(authenticator: Authenticator) -> None:
    certificate = der(ClusterAuthority.create().client_certificate("anna", [])[0])
    with pytest.raises(ApiError) as refusal:
        authenticator.user(None, certificate)
    assert is_unauthorized(refusal.value)


@pytest.mark.parametrize("header", [None, "", "Basic eDp5", "Bearer", "Bearer  "])
def test_without_credentials_one_is_anonymous(
    authenticator: Authenticator, header: str | None
) -> None:
    assert authenticator.user(header, None) == ANONYMOUS


def test_a_token_tells_account_pod_and_node(authenticator: Authenticator) -> None:
    user = authenticator.user(f"Bearer {account_token()}", None)
    assert (user.username, user.uid) == ("system:serviceaccount:default:agent", "uid-agent")
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    )
    extra = dict(user.extra)
    assert extra.pop("authentication.kubernetes.io/credential-id")[0].startswith("JTI=")
    assert extra == {
        "authentication.kubernetes.io/node-name": ("edge-1",),
        "authentication.kubernetes.io/node-uid": ("uid-edge-1",),
        "authentication.kubernetes.io/pod-name": ("agent-x",),
        "authentication.kubernetes.io/pod-uid": ("uid-agent-x",),
    }


@pytest.mark.parametrize(
    ("now_s", "good"),
    [(NOW_S - 1, False), (NOW_S, True), (NOW_S + 599.9, True), (NOW_S + LIFETIME_S, False)],
)
def test_a_token_has_its_time(
    authenticator: Authenticator, clock: Clock, now_s: float, good: bool
) -> None:
    clock.now_s = now_s
    header = f"bearer {account_token()}"
    if good:
        assert authenticator.user(header, None).uid == "uid-agent"
        return
    with pytest.raises(ApiError) as refusal:
        authenticator.user(header, None)
    assert is_unauthorized(refusal.value)


@pytest.mark.parametrize(("plural", "name"), [("serviceaccounts", "agent"), ("pods", "agent-x")])
def test_a_token_ends_with_what_it_is_bound_to(
    authenticator: Authenticator, cluster: SmallCluster, plural: str, name: str
) -> None:
    cluster.remove(plural, name)
    with pytest.raises(ApiError) as refusal:
        authenticator.user(f"Bearer {account_token()}", None)
    assert is_unauthorized(refusal.value)


def test_an_account_of_the_same_name_is_another_one(
    authenticator: Authenticator, cluster: SmallCluster
) -> None:
    cluster.remove("serviceaccounts", "agent")
    cluster.add(
        "serviceaccounts", {"metadata": {"name": "agent", "namespace": "default", "uid": "new"}}
    )
    with pytest.raises(ApiError):
        authenticator.user(f"Bearer {account_token(bound=False)}", None)


def test_a_token_for_somebody_else_is_refused_with_both_audiences(
    authenticator: Authenticator,
) -> None:
    token = account_token(audiences=["somebody", "else"])
    with pytest.raises(TokenRefused) as refusal:
        authenticator.token_owner(token, ())
    assert str(refusal.value) == (
        '[invalid bearer token, token audiences ["somebody" "else"] is invalid for the target '
        'audiences ["https://kubernetes.default.svc"]]'
    )
    assert authenticator.token_owner(token, ["else", "other"]).audiences == ("else",)


def test_tests_may_have_plain_tokens(cluster: SmallCluster) -> None:
    anna = UserInfo(username="anna", groups=("operators",))
    authenticator = Authenticator(AUTHORITY, cluster, static_tokens={"secret": anna})
    groups = ("operators", "system:authenticated")
    assert authenticator.user("Bearer secret", None) == replace(anna, groups=groups)
    with pytest.raises(ApiError):
        authenticator.user("Bearer secre", None)
