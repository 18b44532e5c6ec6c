"""The annotation of kubectl's client-side apply, where server-side apply by kubectl meets it.

Whoever changes to `kubectl apply --server-side` has no conflicts with what the annotation says was
applied, and the annotation follows (apimachinery, managedfields, lastapplied).
"""

import json

from casaba.simulation.api_server.field_sets import EMPTY, FieldSet, compact
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.schemas import Schema
from casaba.simulation.api_server.typed_values import NotTyped, difference, field_set

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The one manager for which the annotation counts."""


def allowed_conflicts(schema: Schema, live: Object, manager: str) -> FieldSet:
    """The fields that the annotation accounts for and that are still as it says."""
    text = _annotations(live).get(ANNOTATION)
    if manager != KUBECTL or not text:
        return EMPTY
    try:
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
            return EMPTY
        found = difference(schema, last, live)
        return field_set(schema, last) - found.added - found.modified - found.removed
    except (ValueError, NotTyped):
        return EMPTY


def with_last_applied(document: Object, wanted: Object, manager: str) -> Object:
    """The object whose annotation, if it has one, tells what kubectl applied now."""
    annotations = _annotations(document)
    if manager != KUBECTL or ANNOTATION not in annotations:
        return document
    text = compact(_without_annotation(wanted)) + "\n"
    metadata = {**document["metadata"], "annotations": {**annotations, ANNOTATION: text}}
    return {**document, "metadata": metadata}


def _annotations(document: Object) -> Object:
    annotations: Object = (document.get("metadata") or {}).get("annotations") or {}
    return annotations


def _without_annotation(wanted: Object) -> Object:
    annotations = {name: text for name, text in _annotations(wanted).items() if name != ANNOTATION}
    if annotations == _annotations(wanted):
        return wanted
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}
