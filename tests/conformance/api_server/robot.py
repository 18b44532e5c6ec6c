"""A service account of the test, its tokens and what it may do."""

from tests.conformance.api_server.door import ApiDoor, Object
from tests.conformance.api_server.objects import made

RBAC = "rbac.authorization.k8s.io/v1"


async def robot_token(api: ApiDoor, name: str = "robot", **spec: object) -> str:
    """A token of a service account, which is made if it is not there."""
    await api.post(api.core("serviceaccounts"), {"metadata": {"name": name}})
    path = f"{api.core('serviceaccounts', name)}/token"
    told = (await api.post(path, {"spec": spec})).object(201)
    token: str = told["status"]["token"]
    return token


async def robot_role(api: ApiDoor, *rules: Object) -> None:
    """Let the robot do something in the test's namespace."""
    await made(api, api.named(RBAC, "roles"), {"metadata": {"name": "r"}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    body = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
    await made(api, api.named(RBAC, "rolebindings"), body)
