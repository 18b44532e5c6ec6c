"""Which objects of a resource a list, watch or deletecollection is about. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from casaba.simulation.api_server.requests import Object, ResourceRequest
from casaba.simulation.api_server.selectors import parsed_field_selector, parsed_label_selector
from casaba.simulation.api_server.watch_log import Change, ChangeKind, Stored, stored


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A namespace, or all of them if empty, and both selectors."""

    namespace: str = ""
    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Object], bool] | None = None

    def __contains__(self, found: Stored) -> bool:
        if self.namespace and found.key.namespace != self.namespace:
            return False
        if self.labels and not self.labels(found.object["metadata"].get("labels") or {}):
            return False
        return not self.fields or self.fields(found.object)

    @property
    def is_all(self) -> bool:
        """Whether no object is left out."""
        return not (self.namespace or self.labels or self.fields)

    def of(self, objects: Iterable[Stored]) -> list[Stored]:
        """Those of the objects that are wanted, by namespace and name as etcd keeps them."""
        chosen = objects if self.is_all else (found for found in objects if found in self)
        return sorted(chosen, key=lambda found: found.key)

    def seen(self, change: Change) -> tuple[ChangeKind, Stored] | None:
        """A change as a watch with this selection sees it.

        An object that stops to match is deleted for the watch, as it was before but at the
        version of the change; one that starts to match is added.
        """
        matched = change.before is not None and change.before in self
        if change.kind == "DELETED":
            return ("DELETED", change.now) if matched else None
        matches = change.now in self
        if matches:
            return ("MODIFIED" if matched else "ADDED"), change.now
        if matched and change.before is not None:
            return "DELETED", stored(change.before.object, change.version)
        return None


def selection(request: ResourceRequest) -> Selection:
    """What a request asks for; raises ApiError 400 for selectors that can't be understood."""
    labels = request.query.get("labelSelector", "")
    fields = request.query.get("fieldSelector", "")
    return Selection(
        namespace=request.namespace,
        labels=parsed_label_selector(labels) if labels else None,
        fields=parsed_field_selector(request.resource, fields) if fields else None,
    )
