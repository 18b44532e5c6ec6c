"""Rules for the metadata of every object (apimachinery, ValidateObjectMeta)."""

from collections.abc import Callable, Iterable, Mapping

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
)

ANNOTATIONS_BYTES = 256 << 10
_NAME_FORMS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "Namespace": names.label,
    "Role": names.path_segment,
    "RoleBinding": names.path_segment,
    "ClusterRole": names.path_segment,
    "ClusterRoleBinding": names.path_segment,
}
_CHECKS_NO_GENERATED_NAME = frozenset({"DeviceClass"})
_OWN_GROUPS = frozenset({"coordination.k8s.io", "admissionregistration.k8s.io"})
"""Groups that leave out the core group's second look at finalizers."""

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_NEVER_CHANGED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def creation_errors(info: ResourceInfo, metadata: Object) -> Errors:
    """Of a new object."""
    form = _NAME_FORMS.get(info.kind, names.subdomain)
    generate_name = metadata.get("generateName", "")
    if generate_name and info.kind not in _CHECKS_NO_GENERATED_NAME:
        prefix = generate_name[:-1] + "a" if generate_name.endswith("-") else generate_name
        yield from each("metadata.generateName", form(prefix), generate_name)
    name = metadata.get("name", "")
    if name:
        yield from each("metadata.name", form(name), name)
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from _namespace_errors(info, metadata.get("namespace", ""))
    yield from _common_errors(metadata)
    finalizers = metadata.get("finalizers", ())
    yield from _finalizer_errors(finalizers)
    if info.group not in _OWN_GROUPS:
        yield from _finalizer_kind_errors(finalizers)


def update_errors(new: Object, old: Object) -> Errors:
    """Of a changed object."""
    added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
    if "deletionTimestamp" in old and added:
        told = ", ".join(f'"{name}"' for name in added)
        yield forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{told}}}",
        )
    for field in _NEVER_CHANGED:
        yield from immutable(f"metadata.{field}", new.get(field), old.get(field))
    yield from _common_errors(new)


def _namespace_errors(info: ResourceInfo, namespace: str) -> Errors:
    if not info.namespaced:
        if namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
    elif namespace:
        yield from each("metadata.namespace", names.label(namespace), namespace)
    else:
        yield required("metadata.namespace")


def _common_errors(metadata: Object) -> Errors:
    yield from label_errors("metadata.labels", metadata.get("labels", {}))
    yield from annotation_errors("metadata.annotations", metadata.get("annotations", {}))
    yield from _owner_errors(metadata.get("ownerReferences", ()))


def label_errors(path: str, labels: Mapping[str, str]) -> Errors:
    """Keys are qualified names, values short."""
    for key, value in labels.items():
        yield from each(path, names.qualified(key), key)
        yield from each(path, names.label_value(value), value)


def annotation_errors(path: str, annotations: Mapping[str, str]) -> Errors:
    """Keys are qualified names, all together not too large."""
    for key in annotations:
        yield from each(path, names.qualified(key.lower()), key)
    size_bytes = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size_bytes > ANNOTATIONS_BYTES:
        yield too_long(path, ANNOTATIONS_BYTES)


def _owner_errors(references: Iterable[Object]) -> Errors:
    controller = ""
    path = "metadata.ownerReferences"
    for reference in references:
        if not reference.get("apiVersion"):
            yield invalid(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not reference.get(field):
                yield invalid(f"{path}.{field}", "", "must not be empty")
        if not reference.get("controller"):
            continue
        name = f"{reference.get('kind')}/{reference.get('name')}"
        if controller:
            yield invalid(
                path,
                list(references),
                'Only one reference can have Controller set to true. Found "true" in '
                f"references for {controller} and {name}",
            )
        controller = controller or name


def _finalizer_kind_errors(finalizers: Iterable[str]) -> Errors:
    for index, finalizer in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(path, finalizer, detail)


def _finalizer_errors(finalizers: Iterable[str]) -> Errors:
    for finalizer in finalizers:
        yield from each("metadata.finalizers", names.qualified(finalizer), finalizer)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield invalid(
            "metadata.finalizers",
            list(finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        )
