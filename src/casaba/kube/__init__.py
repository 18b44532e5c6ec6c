"""The only room that talks to an API server: a thin asynchronous Kubernetes client.

`load_config` finds the server and our identity, `KubeClient` has the verbs, `Informer` follows a
resource for ever, `SharedInformer` lets many follow one, `Election` chooses one of several
processes, `EventRecorder` tells people. May use wire, model, settings, aiokit and errors; knows
nothing of cards, claims' meaning or the host. Writes are dicts or bytes, never Structs that were
read.
"""

from casaba.kube.access import load_config
from casaba.kube.bodies import Body, Patch, Propagation, WriteOptions
from casaba.kube.cache import Added, Deleted, Modified
from casaba.kube.client import KubeClient
from casaba.kube.config import ExecPlugin, Impersonation, KubeConfig
from casaba.kube.election import Election, ElectionTimes, LeadershipLost
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
from casaba.kube.event_correlation import About
from casaba.kube.events import EventRecorder
from casaba.kube.reading import Listed
from casaba.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    ObjectKey,
    Resource,
)
from casaba.kube.sharing import SharedInformer, Subscription
from casaba.kube.transport import ByteStream
from casaba.kube.watching import Informer, InformerEvent, Synced

__all__ = [
    "CLUSTER_ROLES",
    "CLUSTER_ROLE_BINDINGS",
    "CONFIG_MAPS",
    "DAEMON_SETS",
    "DEVICE_CLASSES",
    "EVENTS",
    "LEASES",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_QUOTAS",
    "RESOURCE_SLICES",
    "ROLES",
    "ROLE_BINDINGS",
    "SECRETS",
    "SERVICE_ACCOUNTS",
    "VALIDATING_WEBHOOKS",
    "About",
    "Added",
    "AlreadyExists",
    "Body",
    "ByteStream",
    "Conflict",
    "Deleted",
    "Election",
    "ElectionTimes",
    "EventRecorder",
    "ExecPlugin",
    "Forbidden",
    "Gone",
    "Impersonation",
    "Informer",
    "InformerEvent",
    "Invalid",
    "KubeClient",
    "KubeConfig",
    "KubeConfigError",
    "KubeError",
    "LeadershipLost",
    "Listed",
    "Modified",
    "NotFound",
    "ObjectKey",
    "Patch",
    "Propagation",
    "Refused",
    "Resource",
    "ServerError",
    "SharedInformer",
    "Subscription",
    "Synced",
    "TooManyRequests",
    "Unauthorized",
    "Undecodable",
    "Unreachable",
    "Untrusted",
    "WriteOptions",
    "load_config",
]
