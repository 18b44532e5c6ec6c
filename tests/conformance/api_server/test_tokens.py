"""Tokens of service accounts: how they are had, whose they are, and when they end."""

import base64
import json

import aiohttp

from tests.conformance.api_server.door import ApiDoor, Object, later, until
from tests.conformance.api_server.objects import made, pod
from tests.conformance.api_server.robot import robot_token

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def _claims(token: str) -> Object:
    part = token.split(".")[1]
    claims: Object = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


async def _is_refused(api: ApiDoor, token: str, why: str) -> None:
    """Wait until a token is not believed; a real server believes it for up to ten seconds more."""
    await until(
        lambda: api.post(REVIEWS, {"spec": {"token": token}}),
        lambda answer: why in answer.object(201)["status"].get("error", ""),
    )


async def test_a_token_request_gives_a_token_of_the_account(api: ApiDoor) -> None:
    claims = _claims(await robot_token(api, expirationSeconds=3600))
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
    token = await robot_token(api)
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
    token = await robot_token(api, audiences=["other"])
    told = (await api.post(REVIEWS, {"spec": {"token": token}})).object(201)
    assert not told["status"].get("authenticated")
    body = {"spec": {"token": token, "audiences": ["other"]}}
    told = (await api.post(REVIEWS, body)).object(201)
    assert told["status"]["authenticated"] is True
    assert told["status"]["audiences"] == ["other"]


async def test_a_bearer_is_who_the_token_says(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await robot_token(api), without_certificate)
    told = (await robot.post(SELF, {})).object(201)
    user = told["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{api.namespace}:robot"


async def test_a_token_dies_with_its_account(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    token = await robot_token(api)
    (await api.delete(api.core("serviceaccounts", "robot"))).object()
    robot = api.as_bearer(token, without_certificate)
    (await robot.post(SELF, {})).refused(401, "Unauthorized")


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
    token = await robot_token(api, "default", boundObjectRef=bound)
    claims = _claims(token)["kubernetes.io"]
    assert claims["pod"] == {"name": "one", "uid": made_pod["metadata"]["uid"]}
    robot = api.as_bearer(token, without_certificate)
    extra = (await robot.post(SELF, {})).object(201)["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["one"]
    (await api.delete(api.core("pods", "one"))).object()
    # A real server believes it for up to ten seconds more.
    (await later(lambda: robot.post(SELF, {}), 401)).refused(401, "Unauthorized")


async def test_a_token_of_a_secret_ends_with_it(api: ApiDoor) -> None:
    made_secret = await made(api, api.core("secrets"), {"metadata": {"name": "one"}})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "one"}
    token = await robot_token(api, boundObjectRef=bound)
    claims = _claims(token)["kubernetes.io"]
    assert claims["secret"] == {"name": "one", "uid": made_secret["metadata"]["uid"]}
    (await api.delete(api.core("secrets", "one"))).object()
    await _is_refused(api, token, "service account token has been invalidated")
    await made(api, api.core("secrets"), {"metadata": {"name": "one"}})
    await _is_refused(api, token, "does not match service account secret ref claim")


async def test_a_review_tells_why_a_token_has_ended(api: ApiDoor) -> None:
    token = await robot_token(api)
    (await api.delete(api.core("serviceaccounts", "robot"))).object()
    await _is_refused(api, token, 'serviceaccounts "robot" not found')
    await made(api, api.core("serviceaccounts"), {"metadata": {"name": "robot"}})
    uid = _claims(token)["kubernetes.io"]["serviceaccount"]["uid"]
    await _is_refused(api, token, f"does not match claim ({uid})")
