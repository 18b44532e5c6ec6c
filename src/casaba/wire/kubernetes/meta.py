"""What all kinds share: metadata, lists, statuses, lines of a watch (apimachinery, meta/v1)."""

from typing import Generic, TypeVar

from msgspec import Raw, Struct, field

T = TypeVar("T")


class Wire(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What all share. Values decoded from JSON can't form cycles, so the collector is spared."""


class OwnerReference(Wire, frozen=True):
    """Who owns an object; the owner's deletion collects it."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True):
    """Identity and version of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Identity(Wire, frozen=True):
    """The part of the metadata that a cache lives by."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Identified(Wire, frozen=True):
    """Any object, reduced to its identity."""

    metadata: Identity


class ListMeta(Wire, frozen=True):
    """Version of a list, and the token of its next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class BookmarkMeta(Wire, frozen=True):
    """Version of a bookmark, and what else it says."""

    resource_version: str = ""
    annotations: dict[str, str] = {}


class Bookmark(Wire, frozen=True):
    """How far a watch has come: an object without a name, of the watched kind."""

    metadata: BookmarkMeta

    @property
    def ends_initial_events(self) -> bool:
        """Whether all that there was has been told (KEP-3157)."""
        return self.metadata.annotations.get("k8s.io/initial-events-end") == "true"


class Listing(Wire, Generic[T], frozen=True):
    """A list, or one page of it."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = None


class StatusCause(Wire, frozen=True):
    """One reason of a refusal; `field` is a path such as `metadata.uid`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """The machine-readable part of a refusal."""

    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """What the API server answers when it does not answer with an object."""

    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class WatchEvent(Wire, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Raw


class WatchedObject(Wire, Generic[T], frozen=True):
    """One line of a watch whose object is already understood."""

    type: str
    object: T
