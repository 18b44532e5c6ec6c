"""The only room that talks to an API server: a thin asynchronous Kubernetes client.

`load_config` finds the server and our identity, `KubeClient` has the verbs, `Informer` follows a
resource for ever. May use wire, model, settings, aiokit and errors; knows nothing of cards,
claims' meaning or the host. Writes are dicts or bytes, never Structs that were read.
"""

from casaba.kube.bodies import Body, Patch
from casaba.kube.cache import Added, Deleted, Modified
from casaba.kube.client import KubeClient, Listed
from casaba.kube.config import KubeConfig, load_config
from casaba.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeConfigError,
    KubeError,
    NotFound,
    Refused,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Undecodable,
    Unreachable,
    Untrusted,
)
from casaba.kube.resources import (
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ObjectKey,
    Resource,
)
from casaba.kube.watching import Informer, InformerEvent, Synced

__all__ = [
    "DEVICE_CLASSES",
    "EVENTS",
    "LEASES",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_SLICES",
    "Added",
    "AlreadyExists",
    "Body",
    "Conflict",
    "Deleted",
    "Forbidden",
    "Gone",
    "Informer",
    "InformerEvent",
    "Invalid",
    "KubeClient",
    "KubeConfig",
    "KubeConfigError",
    "KubeError",
    "Listed",
    "Modified",
    "NotFound",
    "ObjectKey",
    "Patch",
    "Refused",
    "Resource",
    "ServerError",
    "Synced",
    "TooManyRequests",
    "Unauthorized",
    "Undecodable",
    "Unreachable",
    "Untrusted",
    "load_config",
]
