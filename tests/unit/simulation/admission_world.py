"""A small cluster, and who asks it for what."""

from typing import Any

import pytest

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.requests import Object, UserInfo
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.small_cluster import (
    SmallCluster,
    asked,
)

DRA = "resource.k8s.io"
LABELS = {"resource.kubernetes.io/admin-access": "true"}
DRIVER = "gpu.example.com"


async def admitted(
    cluster: SmallCluster,
    user: UserInfo,
    verb: str,
    plural: str,
    object_: Object | None,
    old: Object | None = None,
    **fields: Any,
) -> Any:
    """What is left of an object after admission."""
    metadata = (object_ or old or {})["metadata"]
    request = asked(user, verb, plural, metadata["name"], **fields)
    return (await Admission(cluster).admitted(request, object_, old))[0]


async def refused(*arguments: Any, **fields: Any) -> ApiError:
    with pytest.raises(ApiError) as refusal:
        await admitted(*arguments, **fields)
    return refusal.value


def config_map(name: str = "one") -> Object:
    return {"metadata": {"name": name}}
