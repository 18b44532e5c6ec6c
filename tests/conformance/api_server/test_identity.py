"""Who somebody is, what they may do, and how they are told that they may not."""

import aiohttp
import pytest

from tests.conformance.api_server.door import ApiDoor, later, until
from tests.conformance.api_server.objects import config_map, made, made_config_map
from tests.conformance.api_server.robot import RBAC, robot_role, robot_token

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MY_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MY_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


async def test_a_certificate_is_somebody_too(api: ApiDoor) -> None:
    told = (await api.post(SELF, {})).object(201)
    assert "system:masters" in told["status"]["userInfo"]["groups"]


async def test_a_wrong_token_is_unauthorized(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    nobody = api.as_bearer("forged", without_certificate)
    message = (await nobody.get(api.core("configmaps"))).refused(401, "Unauthorized")
    assert message == "Unauthorized"


async def test_nothing_is_allowed_by_default(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await robot_token(api), without_certificate)
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
    robot = api.as_bearer(await robot_token(api), without_certificate)
    await robot_role(
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
    robot = api.as_bearer(await robot_token(api), without_certificate)
    await robot_role(api, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]})
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
    robot = api.as_bearer(await robot_token(api), without_certificate)
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


async def test_the_rules_of_oneself_can_be_listed(
    api: ApiDoor, without_certificate: aiohttp.ClientSession
) -> None:
    robot = api.as_bearer(await robot_token(api), without_certificate)
    rule = {
        "verbs": ["get"],
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["mine"],
    }
    await robot_role(api, rule)
    await later(lambda: robot.get(api.core("configmaps", "mine")), 404)
    told = (await robot.post(MY_RULES, {"spec": {"namespace": api.namespace}})).object(201)
    assert rule in told["status"]["resourceRules"]
    paths = [
        path for rule in told["status"]["nonResourceRules"] for path in rule["nonResourceURLs"]
    ]
    assert {"/apis/*", "/version"} <= set(paths)
    assert told["status"]["incomplete"] is False
    told = (await robot.post(MY_RULES, {"spec": {"namespace": "other"}})).object(201)
    assert rule not in told["status"]["resourceRules"]
    assert not any("secrets" in rule["resources"] for rule in told["status"]["resourceRules"])


async def test_rules_are_those_of_a_namespace(api: ApiDoor) -> None:
    answer = await api.post(MY_RULES, {"spec": {}})
    assert answer.refused(400, "BadRequest") == "no namespace on request"


async def test_the_rules_of_a_kubelet_are_not_all_in_roles(api: ApiDoor) -> None:
    headers = {"Impersonate-User": "system:node:none", "Impersonate-Group": "system:nodes"}
    question = {"spec": {"namespace": api.namespace}}
    status = (await api.post(MY_RULES, question, headers=headers)).object(201)["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == "node authorizer does not support user rule resolution"


async def test_a_role_that_is_not_there_is_told_with_the_rules(api: ApiDoor) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gone"}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tester"}
    body = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
    await made(api, api.named(RBAC, "rolebindings"), body)
    question = {"spec": {"namespace": api.namespace}}
    answer = await until(
        lambda: api.post(MY_RULES, question, headers={"Impersonate-User": "tester"}),
        lambda answer: "evaluationError" in answer.object(201)["status"],
    )
    told = answer.json["status"]["evaluationError"]
    assert told == 'role.rbac.authorization.k8s.io "gone" not found'
