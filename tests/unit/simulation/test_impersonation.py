import pytest
from multidict import CIMultiDict

from casaba.simulation.api_server.impersonation import impersonated
from casaba.simulation.api_server.requests import UserInfo
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.small_cluster import ADMIN, ANNA, SmallCluster, rule

AUTHENTICATION = "authentication.k8s.io"


def as_other(cluster: SmallCluster, user: UserInfo, **headers: str | list[str]) -> UserInfo:
    told: CIMultiDict[str] = CIMultiDict()
    for name, values in headers.items():
        for value in [values] if isinstance(values, str) else values:
            told.add(f"Impersonate-{name.replace('_', '-')}", value)
    return impersonated(user, told, cluster)


def test_without_a_name_one_is_oneself() -> None:
    assert as_other(SmallCluster(), ANNA) is ANNA


@pytest.mark.parametrize("header", ["Group", "Uid", "Extra_Key"])
def test_a_group_alone_is_nobody(header: str) -> None:
    with pytest.raises(ApiError) as refusal:
        as_other(SmallCluster(), ADMIN, **{header: "x"})
    assert refusal.value.code == 400


def test_several_groups_are_kept_in_their_order() -> None:
    user = as_other(SmallCluster(), ADMIN, User="bob", Group=["b", "a"])
    assert user == UserInfo(username="bob", groups=("b", "a", "system:authenticated"))


def test_nobody_in_particular_is_unauthenticated() -> None:
    user = as_other(SmallCluster(), ADMIN, User="system:anonymous")
    assert user.groups == ("system:unauthenticated",)


def test_every_part_of_another_identity_must_be_allowed() -> None:
    cluster = SmallCluster()
    wanted = {"User": "bob", "Group": "g", "Uid": "1", "Extra-Some%2fKey": "v"}
    for allowed, name, resource in (
        (rule("impersonate", "users", resourceNames=["bob"]), "bob", "users"),
        (rule("impersonate", "groups"), "g", "groups"),
        (rule("impersonate", "uids", AUTHENTICATION), "1", f"uids.{AUTHENTICATION}"),
        (
            rule("impersonate", "userextras/some/key", AUTHENTICATION),
            "v",
            f"userextras.{AUTHENTICATION}",
        ),
    ):
        with pytest.raises(ApiError) as refusal:
            as_other(cluster, ANNA, **wanted)
        assert str(refusal.value).startswith(
            f'{resource} "{name}" is forbidden: User "anna" cannot impersonate resource '
        )
        cluster.grant(ANNA, allowed)
    user = as_other(cluster, ANNA, **wanted)
    assert (user.username, user.uid, dict(user.extra)) == ("bob", "1", {"some/key": ("v",)})


def test_a_service_account_is_allowed_by_its_namespace() -> None:
    cluster = SmallCluster()
    cluster.grant(ANNA, rule("impersonate", "serviceaccounts"), namespace="web")
    user = as_other(cluster, ANNA, User="system:serviceaccount:web:agent")
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:web",
        "system:authenticated",
    )
    with pytest.raises(ApiError):
        as_other(cluster, ANNA, User="system:serviceaccount:other:agent")
