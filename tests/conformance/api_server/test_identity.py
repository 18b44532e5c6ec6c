"""Who somebody is, what they may do, and how they are told that they may not."""

import base64
import json

import aiohttp
import pytest

from tests.conformance.api_server.door import ApiDoor, Object, later
from tests.conformance.api_server.objects import config_map, made, made_config_map, pod

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MY_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RBAC = "rbac.authorization.k8s.io/v1"


async def _token(api: ApiDoor, name: str = "robot", **spec: object) -> str:
    await api.post(api.core("serviceaccounts"), {"metadata": {"name": name}})
    path = f"{api.core('serviceaccounts', name)}/token"
    told = (await api.post(path, {"spec": spec})).object(201)
    token: str = told["status"]["token"]
    return token


async def _role(api: ApiDoor, *rules: Object) -> None:
    """Let the robot do something in the test's namespace."""
    await made(api, api.named(RBAC, "roles"), {"metadata": {"name": "r"}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    body = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
    await made(api, api.named(RBAC, "rolebindings"), body)


def _claims(token: str) -> Object:
    part = token.split(".")[1]
    claims: Object = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


async def test_a_token_request_gives_a_token_of_the_account(api: ApiDoor) -> None:
    claims = _claims(await _token(api, expirationSeconds=3600))
    assert claims["sub"] == f"system:serviceaccount:{api.namespace}:robot"
    assert claims["kubernetes.io"]["namespace"] == api.namespace
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "robot"
    assert claims["exp"] - claims["iat"] == 3600


async def test_a_token_must_live_for_ten_minutes(api: ApiDoor) -> None:
    path = f"{api.core('serviceaccounts', 'default')}/token"
    answer = await api.post(path, {"spec": {"expirationSeconds": 1}})
    answer.refused(422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "spec.expirationSeconds")]


async def test_a_token_of_a_missing_account_is_refused(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('serviceaccounts', 'none')}/token", {"spec": {}})
    assert answer.refused(404, "NotFound") == 'serviceaccounts "none" not found'


async def test_a_review_knows_the_owner_of_a_token(api: ApiDoor) -> None:
    token = await _token(api)
    told = (await api.post(REVIEWS, {"spec": {"token": token}})).object(201)
    assert told["status"]["authenticated"] is True
    user = told["status"]["user"]
    assert user["username"] == f"system:serviceaccount:{api.namespace}:robot"
    assert sorted(user["groups"]) == [
        "system:authenticated",
        "system:serviceaccounts",
        f"system:serviceaccounts:{api.namespace}",
    ]
    assert "authentication.kubernetes.io/credential-id" in user["extra"]


async def test_a_review_knows_a_forgery(api: ApiDoor) -> None:
    told = (await api.post(REVIEWS, {"spec": {"token": "forged"}})).object(201)
    assert not told["status"].get("authenticated")
    assert told["status"].get("error")


async def test_a_review_needs_a_token(api: ApiDoor) -> None:
    answer = await api.post(REVIEWS, {"spec": {}})
    message = answer.refused(400, "BadRequest")
    assert message == "token is required for TokenReview in authentication"


async def test_a_token_of_another_audience_is_not_ours(api: ApiDoor) -> None:
    token = await _token(api, audiences=["other"])
    told = (await api.post(REVIEWS, {"spec": {"token": token}})).object(201)
    assert not told["status"].get("authenticated")
    body = {"spec": {"token": token, "audiences": ["other"]}}
    told = (await api.post(REVIEWS, body)).object(201)
    assert told["status"]["authenticated"] is True
    assert told["status"]["audiences"] == ["other"]


async def test_a_bearer_is_who_the_token_says(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await _token(api), without_certificate)
    told = (await robot.post(SELF, {})).object(201)
    user = told["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{api.namespace}:robot"


async def test_a_certificate_is_somebody_too(api: ApiDoor) -> None:
    told = (await api.post(SELF, {})).object(201)
    assert "system:masters" in told["status"]["userInfo"]["groups"]


async def test_a_wrong_token_is_unauthorized(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    nobody = api.as_bearer("forged", without_certificate)
    message = (await nobody.get(api.core("configmaps"))).refused(401, "Unauthorized")
    assert message == "Unauthorized"


async def test_a_token_dies_with_its_account(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    token = await _token(api)
    (await api.delete(api.core("serviceaccounts", "robot"))).object()
    robot = api.as_bearer(token, without_certificate)
    (await robot.post(SELF, {})).refused(401, "Unauthorized")


async def test_nothing_is_allowed_by_default(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await _token(api), without_certificate)
    answer = await robot.get(api.core("configmaps"))
    assert answer.refused(403, "Forbidden") == (
        f'configmaps is forbidden: User "system:serviceaccount:{api.namespace}:robot" cannot list '
        f'resource "configmaps" in API group "" in the namespace "{api.namespace}"'
    )
    answer = await robot.get("/api/v1/nodes/a")
    assert answer.refused(403, "Forbidden") == (
        f'nodes "a" is forbidden: User "system:serviceaccount:{api.namespace}:robot" cannot get '
        'resource "nodes" in API group "" at the cluster scope'
    )


async def test_a_stranger_may_do_nothing(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    stranger = api.as_bearer("", without_certificate)
    message = (await stranger.get(api.core("configmaps"))).refused(403, "Forbidden")
    assert 'User "system:anonymous" cannot list resource "configmaps"' in message


async def test_a_role_allows_what_it_names(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    await made_config_map(api, "mine")
    await made_config_map(api, "other")
    robot = api.as_bearer(await _token(api), without_certificate)
    await _role(
        api,
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["get"],
            "resourceNames": ["mine"],
        },
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "create"]},
    )
    (await later(lambda: robot.get(api.core("configmaps", "mine")), 200)).object()
    (await robot.get(api.core("configmaps", "other"))).refused(403, "Forbidden")
    (await robot.get(api.core("configmaps"))).refused(403, "Forbidden")
    (await robot.get(api.core("pods", "none"))).refused(403, "Forbidden")
    (await robot.get(f"{api.core('pods', 'none')}/status")).refused(404, "NotFound")
    (await robot.get(api.core("secrets"))).object()
    (await robot.post(api.core("secrets"), {"metadata": {"name": "s"}})).object(201)
    (await robot.delete(api.core("secrets", "s"))).refused(403, "Forbidden")


async def test_access_can_be_asked_for_others(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await _token(api), without_certificate)
    await _role(api, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]})
    await later(lambda: robot.get(api.core("configmaps")), 200)

    async def allowed(user: str, verb: str) -> bool:
        attributes = {"namespace": api.namespace, "resource": "configmaps", "verb": verb}
        body = {"spec": {"user": user, "resourceAttributes": attributes}}
        told: bool = (await api.post(ACCESS, body)).object(201)["status"]["allowed"]
        return told

    assert await allowed(f"system:serviceaccount:{api.namespace}:robot", "list")
    assert not await allowed(f"system:serviceaccount:{api.namespace}:robot", "delete")
    assert not await allowed("somebody", "list")


async def test_access_can_be_asked_for_oneself(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    question = {"resourceAttributes": {"verb": "create", "resource": "pods"}}
    told = (await api.post(MY_ACCESS, {"spec": question})).object(201)
    assert told["status"]["allowed"] is True
    robot = api.as_bearer(await _token(api), without_certificate)
    told = (await robot.post(MY_ACCESS, {"spec": question})).object(201)
    assert told["status"]["allowed"] is False


async def test_access_to_paths_can_be_asked_for(api: ApiDoor) -> None:
    for path, allowed in (("/version", True), ("/metrics", False)):
        attributes = {"path": path, "verb": "get"}
        body = {
            "spec": {
                "user": "somebody",
                "groups": ["system:authenticated"],
                "nonResourceAttributes": attributes,
            }
        }
        told = (await api.post(ACCESS, body)).object(201)
        assert told["status"]["allowed"] is allowed


async def test_an_access_review_names_somebody(api: ApiDoor) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    answer = await api.post(ACCESS, body)
    answer.refused(422, "Invalid")
    assert answer.causes[0][1] == "spec.user"


async def test_strangers_may_ask_whether_the_server_lives(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    stranger = api.as_bearer("", without_certificate)
    assert (await stranger.get("/readyz")).text == "ok"
    (await stranger.get("/version")).object()
    (await stranger.get("/apis")).refused(403, "Forbidden")


@pytest.mark.parametrize("group", ["system:masters", "nobodies"])
async def test_somebody_else_can_be_impersonated(api: ApiDoor, group: str) -> None:
    headers = {"Impersonate-User": "someone", "Impersonate-Group": group}
    answer = await api.post(api.core("configmaps"), config_map("one"), headers=headers)
    if group == "system:masters":
        answer.object(201)
    else:
        assert 'User "someone" cannot create' in answer.refused(403, "Forbidden")


async def test_a_token_of_a_missing_pod_is_refused(api: ApiDoor) -> None:
    path = f"{api.core('serviceaccounts', 'default')}/token"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "none"}
    answer = await api.post(path, {"spec": {"boundObjectRef": bound}})
    assert answer.refused(404, "NotFound") == 'pods "none" not found'


async def test_a_token_of_a_pod_names_it_and_dies_with_it(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    made_pod = await made(api, api.core("pods"), pod("one"))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "one"}
    token = await _token(api, "default", boundObjectRef=bound)
    claims = _claims(token)["kubernetes.io"]
    assert claims["pod"] == {"name": "one", "uid": made_pod["metadata"]["uid"]}
    robot = api.as_bearer(token, without_certificate)
    extra = (await robot.post(SELF, {})).object(201)["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["one"]
    (await api.delete(api.core("pods", "one"))).object()
    # A real server believes it for up to ten seconds more.
    (await later(lambda: robot.post(SELF, {}), 401)).refused(401, "Unauthorized")
